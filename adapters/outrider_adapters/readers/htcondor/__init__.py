"""Reader of HTCondor's event logs and user logs: text, JSON and XML."""

from outrider_adapters.readers.htcondor.reader import HTCondorLogReader

__all__ = ["HTCondorLogReader"]

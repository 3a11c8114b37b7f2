"""What HTCondor writes about its jobs: event logs and user logs as text, JSON and XML."""

from outrider_adapters.readers.htcondor.reader import HTCondorLogReader

__all__ = ["HTCondorLogReader"]

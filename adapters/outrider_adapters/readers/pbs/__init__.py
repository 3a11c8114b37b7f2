"""Reader of PBS accounting records: OpenPBS, PBS Pro and Torque."""

from outrider_adapters.readers.pbs.reader import PBSAccountingReader

__all__ = ["PBSAccountingReader"]

"""What PBS writes about its jobs: the accounting records of OpenPBS, PBS Pro and Torque."""

from outrider_adapters.readers.pbs.reader import PBSAccountingReader

__all__ = ["PBSAccountingReader"]

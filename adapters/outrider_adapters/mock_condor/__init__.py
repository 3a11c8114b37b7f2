"""A mock HTCondor pool, and the `mock_condor` adapter that watches it like a real one."""

from outrider_adapters.mock_condor.adapter import MockCondorAdapter, MockCondorSettings

__all__ = ["MockCondorAdapter", "MockCondorSettings"]

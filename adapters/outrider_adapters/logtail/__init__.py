"""The `logtail` adapter, which follows the logs of a batch system."""

from outrider_adapters.logtail.adapter import LogFollower, LogtailAdapter
from outrider_adapters.logtail.settings import LogtailSettings

__all__ = ["LogFollower", "LogtailAdapter", "LogtailSettings"]

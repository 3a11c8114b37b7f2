"""The `logtail` adapter: follows the logs of a batch system as they are written."""

from outrider_adapters.logtail.adapter import LogFollower, LogtailAdapter
from outrider_adapters.logtail.settings import LogtailSettings

__all__ = ["LogFollower", "LogtailAdapter", "LogtailSettings"]

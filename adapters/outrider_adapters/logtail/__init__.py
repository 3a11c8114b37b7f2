"""The `logtail` adapter: follows the logs of a batch system as they are written."""

from outrider_adapters.logtail.adapter import LogtailAdapter
from outrider_adapters.logtail.follower import LogFollower
from outrider_adapters.logtail.settings import LogtailSettings

__all__ = ["LogFollower", "LogtailAdapter", "LogtailSettings"]

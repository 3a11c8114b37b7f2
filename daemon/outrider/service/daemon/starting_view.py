"""What the web may see of a daemon that is still starting."""

import asyncio
import platform
import time
from typing import Final

from outrider import __version__
from outrider.service.core.personal_vos import PersonalVos
from outrider.service.core.pseudonyms import Pseudonyms
from outrider.service.core.user_names import UserNames
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.journal.start_progress import StartProgress
from outrider.service.metrics import MetricStore, Snapshot

_TOLD: Final = ("start_ratio", "start_seconds", "mode", "build_info")
"""Metrics with values at the start. A counter at 0 would be taken for one that began again."""


class StartingView:
    """Stands in for `DaemonView` until there is one.

    Args:
        progress: how far the start has come.
        mode: the configured mode.

    Attributes:
        view: what may be seen of the daemon, once it is there.
        scraping: held by the one scrape that is being rendered.
        failed_requests: as in `DaemonView`, until then.
    """

    def __init__(self, progress: StartProgress, mode: str) -> None:
        self.progress = progress
        self.view: DaemonView | None = None
        self.scraping = asyncio.Lock()
        self.failed_requests = 0
        self._mode = mode

    def ready(self) -> tuple[bool, list[str]]:
        """It is not, and why."""
        return False, [self.progress.sentence]

    def names(self, shown: bool) -> UserNames:
        """How users are shown: nothing is known of any yet."""
        return UserNames(Pseudonyms(b""), PersonalVos(), shown)

    def metrics(self) -> Snapshot:
        """Every declared metric, of which those have values that are known at the start."""
        store = MetricStore({"version": [__version__], "python": [platform.python_version()]})
        store.choose_state("mode", self._mode)
        store.set("start_ratio", self.progress.ratio)
        store.set("start_seconds", time.monotonic() - self.progress.began_at)
        all_metrics, numbers, observations = store.snapshot()
        return Snapshot(
            all_metrics,
            {name: series if name in _TOLD else {} for name, series in numbers.items()},
            {name: {} for name in observations},
        )

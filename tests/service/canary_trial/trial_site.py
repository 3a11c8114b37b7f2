"""A fake daemon for tests of the trial watch."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from outrider.journal import CommandRecord, Entry, Journal
from outrider.service.canary_trial.record import TrialRecord, active_trial, trial_on_record
from outrider.service.canary_trial.trial import FollowedTrial, Trial
from outrider.service.canary_trial.watch import TrialWatch
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.core.mode_limit import ModeLimit
from outrider.service.modes.gathering import stated_by
from tests.service.canary_trial.trials import SUNDAY_S


def configured(mode: str = "canary", policy: str = "survival", **acting: Any) -> LoadedConfig:
    """A canary by days of two weeks."""
    return check_config(
        {
            "mode": mode, "adapters": {"simulated": {}}, "policies": {policy: {}},
            "acting": {"canary_by": "days", "canary_days": 14} | acting,
        },
        "test",
    )  # fmt: skip


class Site:
    """The parts of a daemon that the watch needs, with a clock set by the test."""

    def __init__(
        self, folder: Path, loaded: LoadedConfig, trial: TrialRecord | None = None
    ) -> None:
        self.loaded, self.trial = loaded, trial
        self.records: list[CommandRecord] = []
        self.decided_again = 0
        self.journal = folder / "journal.sqlite"
        self.limit: ModeLimit | None = None
        self.trial_lost = ""
        self.lock = asyncio.Lock()
        self.recording: Any = SimpleNamespace(failure=None)
        self.view = SimpleNamespace(twin=SimpleNamespace(file=None))
        engine = SimpleNamespace(silent=False, events=1, decide_again=self._decide_again)
        self.core: Any = SimpleNamespace(
            engine=engine, site=SimpleNamespace(now=SUNDAY_S), trial=self._followed(),
        )  # fmt: skip
        self.core.trial.follow(active_trial(trial, loaded.config))
        self.watch = self.new_watch()

    def new_watch(self) -> TrialWatch:
        """Return the watch of a daemon that has just started."""
        return TrialWatch(self, self._record, lambda config: stated_by(self.view.twin.file, config))

    def look(self, now_s: float | None = None, loaded: LoadedConfig | None = None) -> None:
        """Look at a time, under a configuration; the core is new where that is another."""
        self.core.site.now = self.core.site.now if now_s is None else now_s
        if loaded is not None:
            self.loaded = loaded
            self.core.trial = self._followed()
            self.core.trial.follow(active_trial(self.trial, loaded.config))
        asyncio.run(self.watch.look())

    @property
    def registered(self) -> Trial:
        assert self.trial is not None
        return self.trial.trial

    def _followed(self) -> FollowedTrial:
        parts: Any = SimpleNamespace(trial=None), SimpleNamespace(tally=None)
        return FollowedTrial(*parts)

    def _decide_again(self) -> None:
        self.decided_again += 1

    async def _record(self, record: CommandRecord, meta: Mapping[str, Any]) -> None:
        self.records.append(record)
        with Journal(self.journal) as journal:
            journal.append(Entry(commands=[record], meta=dict(meta)))

    def on_record(self) -> TrialRecord | None:
        """The trial as a restart finds it."""
        return trial_on_record(self.journal)[0]

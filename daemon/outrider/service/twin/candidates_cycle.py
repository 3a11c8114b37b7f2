"""Periodic forecasts of when waiting jobs would start under each candidate policy."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import structlog

from outrider.forecast.candidate_starts import HORIZON_DAYS, CandidateStarts
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.present import Present, SiteRules
from outrider.forecast.queue_state import Floats
from outrider.forecast.recalibration import LEVELS, as_log, as_seconds
from outrider.journal import Journal, SnapshotStore
from outrider.journal.site_facts import facts_on_record
from outrider.journal.snapshots import Snapshot
from outrider.model.errors import OutriderError
from outrider.model.events import NamedEvent
from outrider.model.localtime import DAY_S
from outrider.model.machines import ClusterSpec
from outrider.service.config.declarations import acting_of, twin_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.core import Core
from outrider.service.journal.recording import SNAPSHOTS_NAME
from outrider.service.journal.restart import replay_inputs
from outrider.service.twin.cycle import candidates_of, maker_of
from outrider.service.twin.starts_file import StartInterval

MAX_STARTS: Final = 100_000
"""Most starts stored for all candidates together; in longer queues the first jobs have one."""
_LONGEST_PROBLEM: Final = 300
_BEYOND_S: Final = 1e12
_NOT_LEARNED: Final = "the daemon has not run it yet, or its learned state cannot be restored"


class UnderCandidates(NamedTuple):
    """Forecasts of starts under the candidates.

    Attributes:
        asked_s: time up to which the site was seen, Unix seconds; None: never.
        starts: expected starts by policy and job; None: not known.
        problems: why there is no forecast under a policy, by its name.
    """

    asked_s: float | None
    starts: dict[str, dict[str, StartInterval | None]]
    problems: dict[str, str]

    def of_jobs(self, waiting: Mapping[str, object]) -> dict[str, dict[str, StartInterval | None]]:
        """Return the starts of these jobs only: the others have started or left since."""
        return {
            policy: {job: start for job, start in starts.items() if job in waiting}
            for policy, starts in self.starts.items()
        }


NEVER_ASKED: Final = UnderCandidates(None, {}, {})


class CandidatesCycle:
    """Simulation of the site's near future under each policy that the daemon runs in shadow.

    Args:
        journal: journal of the daemon.
        loaded: returns the configuration; called each time.
        clock: returns monotonic seconds.

    Attributes:
        result: the last forecasts.
    """

    def __init__(
        self,
        journal: Path,
        loaded: Callable[[], LoadedConfig],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._loaded = loaded
        self._clock = clock
        self._asked_at: float | None = None
        self._took_s = 0.0
        self._candidates: dict[str, object] = {}
        self.result = NEVER_ASKED

    def look(
        self,
        site: FollowedSite,
        moved: Mapping[str, Floats],
        expected: Mapping[str, StartInterval | None],
    ) -> bool:
        """Make new forecasts if they are due. An error becomes a problem of one or all policies.

        Args:
            site: the site, followed up to now.
            moved: recalibration of the forecasts under the incumbent: `Outlook.moved`.
            expected: the expected starts under the incumbent, by job; None: not known.

        Returns:
            True if the result has changed.
        """
        loaded, began_s = self._loaded(), self._clock()
        settings, candidates = twin_of(loaded.config), candidates_of(loaded)
        if not settings.candidates_every_s:
            had_result, self.result = self.result is not NEVER_ASKED, NEVER_ASKED
            return had_result
        every_s = max(settings.candidates_every_s, 2.0 * self._took_s)
        asked = self._asked_at is not None and began_s - self._asked_at < every_s
        if asked and candidates == self._candidates:
            return False
        self._asked_at, self._candidates = began_s, dict(candidates)
        try:
            self.result = self._ask(loaded, site, moved, expected)
        except Exception as error:  # noqa: BLE001 - must not stop the incumbent's forecasts
            self.result = NEVER_ASKED._replace(
                asked_s=site.now_s, problems=dict.fromkeys(candidates, _why(error))
            )
        self._took_s = self._clock() - began_s
        for policy, why in self.result.problems.items():
            log.warning("candidate_starts_unavailable", policy=policy, reason=why)
        return True

    def _ask(
        self,
        loaded: LoadedConfig,
        site: FollowedSite,
        moved: Mapping[str, Floats],
        expected: Mapping[str, StartInterval | None],
    ) -> UnderCandidates:
        facts, settings = facts_on_record(self._journal), twin_of(loaded.config)
        clusters = [] if facts is None else list(facts.clusters)
        core, fresh = recall_core(loaded, clusters, self._journal, site.seq)
        problems = {**core.lost_policies, **dict.fromkeys(fresh, _NOT_LEARNED)}
        present = present_of(loaded, core)
        asked = [name for name in present.policies if name not in problems]
        starts: dict[str, dict[str, StartInterval | None]] = {}
        if expected and asked:
            make = maker_of(loaded, candidates_of(loaded))
            known = None if facts is None or facts.incumbent is None else facts.incumbent.policy
            ahead = CandidateStarts(present, site, make, settings.seed, self._clock, known)
            until_s = self._clock() + settings.candidates_budget_s
            for n, name in enumerate(asked):
                left_s = max(0.0, until_s - self._clock()) / (len(asked) - n)
                try:
                    starts_s = ahead.starts_s(name, left_s)
                except Exception as error:  # noqa: BLE001 - a plugin's fault: only its column
                    problems[name] = _why(error)
                    continue
                jobs = ahead.jobs[: MAX_STARTS // len(asked)]
                starts[name] = start_intervals(jobs, starts_s, site.now_s, moved, expected)
        short = {name: why[:_LONGEST_PROBLEM] for name, why in problems.items()}
        return UnderCandidates(site.now_s, starts, short)


def present_of(loaded: LoadedConfig, core: Core) -> Present:
    """Return the state of a core for a simulation forward; the core must not be used afterwards."""
    config = loaded.config
    rules = SiteRules(
        core.discipline.name, config.reconsider_s, loaded.reboot_day_s(), config.shares,
        loaded.make_estimator, acting_of(config).longest_deferral_s,
    )  # fmt: skip
    names = core.merger.normaliser
    return Present(core.engine, rules, names.job_names, names.machine_names)


def start_intervals(
    jobs: list[str],
    starts_s: Floats,
    now_s: float,
    moved: Mapping[str, Floats],
    expected: Mapping[str, StartInterval | None],
) -> dict[str, StartInterval | None]:
    """Return the expected start of each job in the incumbent's forecast, from simulated starts.

    Args:
        jobs: names, by column.
        starts_s: (replicates, jobs) Unix seconds; inf: not within the horizon.
        now_s: the present moment.
        moved: (3,) recalibration of the quantiles of each job's forecast under the incumbent; nan:
            there is none, and the start under a policy is known only if it is now.
        expected: the expected starts under the incumbent.
    """
    waits_s = np.minimum(starts_s[:, : len(jobs)] - now_s, _BEYOND_S)
    quantiles_s = np.quantile(waits_s, LEVELS, axis=0).T
    intervals: dict[str, StartInterval | None] = dict.fromkeys(expected)
    for name, raw_s, latest_s in zip(jobs, quantiles_s, waits_s.max(axis=0), strict=True):
        if expected.get(name) is None or raw_s[-1] > HORIZON_DAYS * DAY_S:
            continue
        wait_s = raw_s if latest_s <= 0.0 else np.sort(as_seconds(as_log(raw_s) + moved[name]))
        if np.isnan(wait_s).any():
            continue
        intervals[name] = StartInterval(*(now_s + wait_s).tolist())
    return intervals


def _why(error: Exception) -> str:
    if isinstance(error, OutriderError):
        return str(error)
    log.error("candidate_starts_failed", exc_info=error)
    return f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM]


# -- shadow state ----------------------------------------------------------------------------------
# Reconstruction of the daemon's state from its journal, with its shadow policies.

log = structlog.get_logger()


def recall_core(
    loaded: LoadedConfig, clusters: list[ClusterSpec], journal: Path, until_seq: int
) -> tuple[Core, list[str]]:
    """Return a core in the state that the daemon had at an input of its journal.

    It begins from the newest usable snapshot, as a restart does; without one, the policies learn
    from the journal alone.

    Args:
        loaded: the configuration.
        clusters: the recorded clusters.
        journal: journal of the daemon, which may be writing it.
        until_seq: sequence number of the last input.

    Returns:
        The core, and the names of the policies that the snapshot lacks: they have learned nothing.

    Raises:
        LedgerError: the journal cannot be read.
    """
    snapshots = SnapshotStore(journal.parent / SNAPSHOTS_NAME)
    core, seq, fresh = Core(loaded, [], clusters), 0, []
    for snapshot in snapshots.newest_first(until_seq):
        try:
            fresh, seq = _restored(core, snapshot), snapshot.seq
            break
        except Exception as error:  # noqa: BLE001 - of another version, or a plugin's own fault
            log.warning("snapshot_skipped", error=f"{type(error).__name__}: {error}")
            core = Core(loaded, [], clusters)
    with Journal(journal, read_only=True) as opened:
        replay_inputs(core, _until(opened.inputs_after(seq), until_seq))
    return core, fresh


def _restored(core: Core, snapshot: Snapshot) -> list[str]:
    return core.restore(snapshot.state)


def _until(
    rows: Iterator[tuple[int, str, NamedEvent]], seq: int
) -> Iterator[tuple[int, str, NamedEvent]]:
    return takewhile(lambda row: row[0] <= seq, rows)

"""When waiting jobs would start under each candidate, asked now and then beside the daemon."""

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
from outrider.service.twin.starts_file import StartTold

MOST_TOLD: Final = 100_000
"""Starts under all candidates together; of a longer queue the first jobs have one."""
_LONGEST_PROBLEM: Final = 300
_BEYOND_S: Final = 1e12
_NOT_LEARNED: Final = "the daemon has not run it yet, or it does not take what it had learned"


class UnderCandidates(NamedTuple):
    """What is said of the candidates.

    Attributes:
        asked_s: up to when the site was seen, Unix seconds; None: they were never asked.
        starts: by policy and job; None: not known.
        problems: why nothing is said under a policy, by its name.
    """

    asked_s: float | None
    starts: dict[str, dict[str, StartTold | None]]
    problems: dict[str, str]

    def of_jobs(self, waiting: Mapping[str, object]) -> dict[str, dict[str, StartTold | None]]:
        """The starts of these jobs alone: the others have started, or left, meanwhile."""
        return {
            policy: {job: start for job, start in starts.items() if job in waiting}
            for policy, starts in self.starts.items()
        }


NEVER_ASKED: Final = UnderCandidates(None, {}, {})


class CandidatesCycle:
    """Runs the site forward under each policy that the daemon runs in shadow.

    Args:
        journal: of the daemon.
        loaded: the configuration; asked each time.
        clock: seconds that only ever go on.

    Attributes:
        told: what was said last.
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
        self.told = NEVER_ASKED

    def look(
        self, site: FollowedSite, moved: Mapping[str, Floats], said: Mapping[str, StartTold | None]
    ) -> bool:
        """Ask if it is time. Whatever goes wrong is a problem of a policy, or of all.

        Args:
            site: followed up to now.
            moved: by how much forecasts under the incumbent were moved: `Outlook.moved`.
            said: the expected starts under the incumbent, by job; None: not known.

        Returns:
            Whether there is something else to be told than before.
        """
        loaded, began_s = self._loaded(), self._clock()
        settings, candidates = twin_of(loaded.config), candidates_of(loaded)
        if not settings.candidates_every_s:
            was_told, self.told = self.told is not NEVER_ASKED, NEVER_ASKED
            return was_told
        every_s = max(settings.candidates_every_s, 2.0 * self._took_s)
        asked = self._asked_at is not None and began_s - self._asked_at < every_s
        if asked and candidates == self._candidates:
            return False
        self._asked_at, self._candidates = began_s, dict(candidates)
        try:
            self.told = self._ask(loaded, site, moved, said)
        except Exception as error:  # noqa: BLE001 - the starts under the incumbent must go on
            self.told = NEVER_ASKED._replace(
                asked_s=site.now_s, problems=dict.fromkeys(candidates, _why(error))
            )
        self._took_s = self._clock() - began_s
        for policy, why in self.told.problems.items():
            log.warning("candidate_starts_unavailable", policy=policy, reason=why)
        return True

    def _ask(
        self,
        loaded: LoadedConfig,
        site: FollowedSite,
        moved: Mapping[str, Floats],
        said: Mapping[str, StartTold | None],
    ) -> UnderCandidates:
        facts, settings = facts_on_record(self._journal), twin_of(loaded.config)
        clusters = [] if facts is None else list(facts.clusters)
        core, fresh = recall_core(loaded, clusters, self._journal, site.seq)
        problems = {**core.lost_policies, **dict.fromkeys(fresh, _NOT_LEARNED)}
        present = present_of(loaded, core)
        asked = [name for name in present.policies if name not in problems]
        starts: dict[str, dict[str, StartTold | None]] = {}
        if said and asked:
            make = maker_of(loaded, candidates_of(loaded))
            known = None if facts is None or facts.incumbent is None else facts.incumbent.policy
            ahead = CandidateStarts(present, site, make, settings.seed, self._clock, known)
            until_s = self._clock() + settings.candidates_budget_s
            for n, name in enumerate(asked):
                left_s = max(0.0, until_s - self._clock()) / (len(asked) - n)
                try:
                    starts_s = ahead.starts_s(name, left_s)
                except Exception as error:  # noqa: BLE001 - a stranger's code: its column alone
                    problems[name] = _why(error)
                    continue
                jobs = ahead.jobs[: MOST_TOLD // len(asked)]
                starts[name] = told_starts(jobs, starts_s, site.now_s, moved, said)
        short = {name: why[:_LONGEST_PROBLEM] for name, why in problems.items()}
        return UnderCandidates(site.now_s, starts, short)


def present_of(loaded: LoadedConfig, core: Core) -> Present:
    """The state of a core, to be run forward; the core is of no more use."""
    config = loaded.config
    rules = SiteRules(
        core.discipline.name, config.reconsider_s, loaded.reboot_day_s(), config.shares,
        loaded.make_estimator, acting_of(config).longest_deferral_s,
    )  # fmt: skip
    names = core.merger.normaliser
    return Present(core.engine, rules, names.job_names, names.machine_names)


def told_starts(
    jobs: list[str],
    starts_s: Floats,
    now_s: float,
    moved: Mapping[str, Floats],
    said: Mapping[str, StartTold | None],
) -> dict[str, StartTold | None]:
    """What is said of each job that the incumbent's forecast names.

    Args:
        jobs: names, by column.
        starts_s: (replicates, jobs) Unix seconds; inf: not within the horizon.
        now_s: the present moment.
        moved: (3,) by how much the quantiles of each job's forecast under the incumbent were moved.
        said: under the incumbent.
    """
    waits_s = np.minimum(starts_s[:, : len(jobs)] - now_s, _BEYOND_S)
    quantiles_s = np.quantile(waits_s, LEVELS, axis=0).T
    told: dict[str, StartTold | None] = dict.fromkeys(said)
    for name, raw_s, latest_s in zip(jobs, quantiles_s, waits_s.max(axis=0), strict=True):
        if said.get(name) is None or raw_s[-1] > HORIZON_DAYS * DAY_S:
            continue
        wait_s = raw_s if latest_s <= 0.0 else np.sort(as_seconds(as_log(raw_s) + moved[name]))
        told[name] = StartTold(*(now_s + wait_s).tolist())
    return told


def _why(error: Exception) -> str:
    if isinstance(error, OutriderError):
        return str(error)
    log.error("candidate_starts_failed", exc_info=error)
    return f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM]


# -- shadow state ----------------------------------------------------------------------------------
# The daemon's state as its journal tells it, policies in shadow included, beside the daemon.

log = structlog.get_logger()


def recall_core(
    loaded: LoadedConfig, clusters: list[ClusterSpec], journal: Path, until_seq: int
) -> tuple[Core, list[str]]:
    """A core in the state in which the daemon was at an input of its journal.

    It begins from the newest snapshot that fits, as a restart does; without one, the policies learn
    from the journal alone.

    Args:
        loaded: the configuration.
        clusters: their habits, as on record.
        journal: of the daemon, which may be writing it.
        until_seq: number of the last input.

    Returns:
        The core, and names of the policies that are not in the snapshot: they know nothing.

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

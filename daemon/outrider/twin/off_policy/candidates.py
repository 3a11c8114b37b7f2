"""Who says where a start would have gone: a policy that is asked, or what is on record of one."""

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from outrider.acting.gate import ACT
from outrider.engine import PolicyRunner
from outrider.engine.scheduling.open_places import OpenPlaces
from outrider.ledger import AlikeDecision, Journal
from outrider.model.decisions import START, Names
from outrider.model.jobs import Job


class Candidate(Protocol):
    """What could have chosen in place of the incumbent."""

    @property
    def name(self) -> str:
        """Name of the policy."""
        ...

    def odds(self, job: Job, places: OpenPlaces) -> Mapping[int, float]:
        """The probability of each machine on which a job may start now; empty: it starts none."""
        ...


class AskedPolicy:
    """A policy that runs in shadow beside the record and is asked at each start.

    Args:
        runner: of the policy, on the site of the record.
        rng: of what it draws when it is asked.
    """

    def __init__(self, runner: PolicyRunner, rng: random.Random) -> None:
        self.name = runner.name
        self._runner = runner
        self._rng = rng

    def odds(self, job: Job, places: OpenPlaces) -> Mapping[int, float]:
        """Where it would start the job if it had to; empty once it has failed."""
        return self._runner.would_choose(job, places.site, self._rng)


class Said(NamedTuple):
    """What a policy decided for a job.

    Attributes:
        time_s: since when.
        machine: name of the machine on which it would start; None: it would not start it.
    """

    time_s: float
    machine: str | None


class DecisionsOnRecord(NamedTuple):
    """What a journal holds of decisions.

    Attributes:
        said: by policy and job name, in order; of the policies that were asked for.
        acted: names of the jobs on which a decision was carried out.
    """

    said: Mapping[str, Mapping[str, list[Said]]]
    acted: frozenset[str]

    @classmethod
    def of(cls, path: Path, policies: Collection[str]) -> "DecisionsOnRecord":
        """Read a journal. Raises `LedgerError`."""
        said: dict[str, defaultdict[str, list[Said]]] = {
            name: defaultdict(list) for name in policies
        }
        acted: set[str] = set()
        with Journal(path, read_only=True) as journal:
            for _, row in journal.decisions():
                jobs = row.jobs if isinstance(row, AlikeDecision) else (row.job,)
                if row.gate == ACT:
                    acted.update(jobs)
                if row.policy in said:
                    what = Said(row.time_s, row.machine if row.action == START else None)
                    for job in jobs:
                        said[row.policy][job].append(what)
        return cls(said, frozenset(acted))


class RecordedPolicy:
    """A policy in shadow whose decisions the daemon wrote down.

    Which machine of a group it named matters little to it (`outrider.model.decisions.Choice`), and
    may be taken by the time of the start: it stands for all of its group that are free.

    Args:
        name: of the policy.
        said: by job name, in order of time.
        names: of jobs and machines of the record.
    """

    def __init__(self, name: str, said: Mapping[str, list[Said]], names: Names) -> None:
        self.name = name
        self._said = said
        self._names = names
        self._numbers: dict[str, int] = {}

    def odds(self, job: Job, places: OpenPlaces) -> Mapping[int, float]:
        """What stood decided at the start; empty where nothing did, or the group is full."""
        told = self._said.get(self._names.job_names[job.number], [])
        at = bisect_right(told, places.now, key=lambda said: said.time_s)
        machine = told[at - 1].machine if at else None
        if machine is None:
            return {}
        site = places.site
        group = site.machine_cluster[self._number(machine)]
        alike = [one for one in places.free_since if site.machine_cluster[one] == group]
        return dict.fromkeys(alike, 1.0 / len(alike)) if alike else {}

    def _number(self, machine: str) -> int:
        if machine not in self._numbers:
            names = self._names.machine_names
            self._numbers = {name: number for number, name in enumerate(names)}
        return self._numbers[machine]

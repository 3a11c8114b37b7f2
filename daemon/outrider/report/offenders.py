"""Worst offenders: where computing time was wasted, by user, machine and job; black holes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from scipy.special import betaincinv

from outrider.report.figures import Tariff, run_sums
from outrider.report.runs import FAILING, WITHIN_S, Runs, Sums

LISTED: Final = 10
"""Maximal number of rows of each list."""
K = TypeVar("K", int, str)


def offenders(runs: Runs, machine_names: Sequence[str], tariff: Tariff) -> dict[str, Any]:
    """Return the lists of those who wasted runs, the worst first.

    Users and machines are sorted by CPU-seconds of badput, machines with failed starts by the
    number of failed jobs, jobs by the number of wasted runs.
    """
    tries = runs.first_tries
    tried: dict[int, list[int]] = {}
    for (machine, _), (jobs, failed) in tries.items():
        sums = tried.setdefault(machine, [0, 0])
        sums[0] += jobs
        sums[1] += failed
    names = {number: machine_names[number] for number in (*runs.by_machine, *tried)}
    failing = sorted(
        (number for number, (_, failed) in tried.items() if failed),
        key=lambda number: (-tried[number][1], names[number]),
    )[:LISTED]
    return {
        "users": [
            {"user": user} | _sums_row(sums, runs.total, tariff)
            for user, sums in _worst(runs.by_user, {user: user for user in runs.by_user})
        ],
        "machines": [
            {"machine": names[number], "starts": runs.starts[number]}
            | _sums_row(sums, runs.total, tariff)
            for number, sums in _worst(runs.by_machine, names)
        ],
        "failed_starts": [
            {
                "machine": names[number], "jobs_tried": tried[number][0],
                "jobs_failed": tried[number][1],
            }
            for number in failing
        ],
        "black_holes": [
            {
                "machine": names[hole.machine], "jobs_tried": hole.tried,
                "jobs_failed": hole.failed, "users": hole.users,
                "rate": hole.failed / hole.tried, "rate_at_least": hole.low,
                "rate_expected": hole.expected,
            }
            for hole in black_holes(tries)
        ],
        "jobs": [
            {"job": name, "user": user} | _sums_row(sums, runs.total, tariff)
            for name, user, sums in _most_often(runs)
        ],
        "rule": {
            "within_s": WITHIN_S, "reasons": sorted(FAILING), "alpha": ALPHA,
            "machines": len(tried), "times": TIMES, "fewest_users": FEWEST_USERS,
        },
    }  # fmt: skip


def _worst(by: Mapping[K, Sums], names: Mapping[K, str]) -> list[tuple[K, Sums]]:
    """Return the rows with the most badput; equal ones by name."""
    rows = [(key, sums) for key, sums in by.items() if sums.thrown_away]
    return sorted(rows, key=lambda row: (-row[1].badput_s, names[row[0]]))[:LISTED]


def _most_often(runs: Runs) -> list[tuple[str, str, Sums]]:
    rows = [(*runs.jobs[number], sums) for number, sums in runs.by_job.items()]
    return sorted(rows, key=lambda row: (-row[2].thrown_away, -row[2].badput_s, row[0]))[:LISTED]


def _sums_row(sums: Sums, total: Sums, tariff: Tariff) -> dict[str, Any]:
    return run_sums(sums, tariff) | {
        "badput_share": sums.badput_s / total.badput_s if total.badput_s else None,
        "reasons": dict(sorted(sums.reasons.items(), key=lambda row: (-row[1], row[0]))),
    }


# -- black holes -----------------------------------------------------------------------------------
# Black holes: machines on which far more starts fail within minutes than elsewhere.
#
# A job counts once on each machine, so that one that is tried there again and again is no evidence.
# The rate to expect of a machine is that at which the same users' jobs fail on the other machines:
# users whose jobs fail everywhere make no black hole. A one-sided exact bound (Clopper and Pearson
# 1934) at .01 over the number of machines (Bonferroni) excludes chance: on a site without black
# holes at most about one report of a hundred names one.

ALPHA: Final = 0.01
"""Probability that a report of a site without black holes names one."""
TIMES: Final = 2.0
"""A machine is named if the bound of its rate exceeds this multiple of the expected rate."""
FEWEST_USERS: Final = 2
"""Minimal number of users whose jobs failed there; one if the site has only one."""
Tries = Mapping[tuple[int, str], tuple[int, int]]
"""Jobs tried and jobs that failed to start, by machine and user."""


class BlackHole(NamedTuple):
    """Machine on which far more jobs fail than elsewhere.

    Attributes:
        machine: its number.
        tried, failed: numbers of jobs.
        users: number of users whose jobs failed there.
        low: lower bound of the rate, at 1 - `ALPHA` over all machines together.
        expected: rate of the same users' jobs on the other machines.
    """

    machine: int
    tried: int
    failed: int
    users: int
    low: float
    expected: float


def black_holes(tries: Tries) -> list[BlackHole]:
    """Return the machines that are black holes, those with the most failed jobs first.

    Machines whose bound exceeds the expected rate, even slightly, are excluded from that rate. This
    is repeated until no such machine is left, so that many black holes do not hide each other.
    """
    by_machine: defaultdict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for (machine, user), counts in tries.items():
        by_machine[machine][user] = counts
    alpha = ALPHA / max(1, len(by_machine))
    fewest = min(FEWEST_USERS, len({user for _, user in tries}))
    worse: dict[int, BlackHole] = {}
    while True:
        others = {m: users for m, users in by_machine.items() if m not in worse}
        elsewhere = _Elsewhere(others)
        judged = [_judged(machine, users, elsewhere, alpha) for machine, users in others.items()]
        more = {one.machine: one for one in judged if one.low > one.expected}
        if not more:
            break
        worse |= more
    found = [_judged(machine, by_machine[machine], elsewhere, alpha) for machine in worse]
    named = [one for one in found if one.users >= fewest and one.low > TIMES * one.expected]
    return sorted(named, key=lambda hole: (-hole.failed, hole.machine))


class _Elsewhere:
    """Rates at which jobs failed, by user and in all."""

    def __init__(self, machines: Mapping[int, Mapping[str, tuple[int, int]]]) -> None:
        self._machines = machines
        self._by_user: dict[str, tuple[int, int]] = {}
        self._all = (0, 0)
        for users in machines.values():
            for user, (n, bad) in users.items():
                before = self._by_user.get(user, (0, 0))
                self._by_user[user] = before[0] + n, before[1] + bad
                self._all = self._all[0] + n, self._all[1] + bad

    def __contains__(self, machine: object) -> bool:
        return machine in self._machines

    def rate(self, users: Mapping[str, tuple[int, int]], *, within: bool) -> float:
        """Return the expected failure rate of jobs of these users, weighted by their numbers.

        If `within`, the given jobs themselves are not counted. A user's rate counts as if one more
        job had failed at the rate of all users: a user who ran nowhere else has that rate.
        """
        tried = sum(counts[0] for counts in users.values())
        failed = sum(counts[1] for counts in users.values())
        rest = (self._all[0] - tried, self._all[1] - failed) if within else self._all
        of_all = (rest[1] + 0.5) / (rest[0] + 1.0)
        expected = 0.0
        for user, counts in users.items():
            n, bad = self._by_user.get(user, (0, 0))
            if within:
                n, bad = n - counts[0], bad - counts[1]
            expected += counts[0] * (bad + of_all) / (n + 1.0)
        return expected / tried


def _judged(
    machine: int, users: Mapping[str, tuple[int, int]], elsewhere: _Elsewhere, alpha: float
) -> BlackHole:
    """Compare a machine with the others; `elsewhere` may contain it or not."""
    tried = sum(counts[0] for counts in users.values())
    failed = sum(counts[1] for counts in users.values())
    whose = sum(counts[1] > 0 for counts in users.values())
    low = float(betaincinv(failed, tried - failed + 1, alpha)) if failed else 0.0
    expected = elsewhere.rate(users, within=machine in elsewhere)
    return BlackHole(machine, tried, failed, whose, low, expected)

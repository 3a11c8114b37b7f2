"""The worst offenders: where work was thrown away, by user, machine and job; black holes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from outrider.report.black_holes import ALPHA, FEWEST_USERS, TIMES, black_holes
from outrider.report.figures import run_sums
from outrider.report.runs import FAILING, WITHIN_S, Runs, Sums
from outrider.report.tariff import Tariff

LISTED: Final = 10
"""So many of each kind."""
K = TypeVar("K", int, str)


def offenders(runs: Runs, machine_names: Sequence[str], tariff: Tariff) -> dict[str, Any]:
    """Lists, the worst first; whoever threw nothing away is in none.

    Users and machines come by CPU-seconds of badput, machines with failed starts by their number,
    jobs by how often they were thrown away.
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
            {"user": user} | _told(sums, runs.total, tariff)
            for user, sums in _worst(runs.by_user, {user: user for user in runs.by_user})
        ],
        "machines": [
            {"machine": names[number], "starts": runs.starts[number]}
            | _told(sums, runs.total, tariff)
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
            {"job": name, "user": user} | _told(sums, runs.total, tariff)
            for name, user, sums in _most_often(runs)
        ],
        "rule": {
            "within_s": WITHIN_S, "reasons": sorted(FAILING), "alpha": ALPHA,
            "machines": len(tried), "times": TIMES, "fewest_users": FEWEST_USERS,
        },
    }  # fmt: skip


def _worst(by: Mapping[K, Sums], names: Mapping[K, str]) -> list[tuple[K, Sums]]:
    """Those with the most badput; of equals, by name."""
    rows = [(key, sums) for key, sums in by.items() if sums.thrown_away]
    return sorted(rows, key=lambda row: (-row[1].badput_s, names[row[0]]))[:LISTED]


def _most_often(runs: Runs) -> list[tuple[str, str, Sums]]:
    rows = [(*runs.jobs[number], sums) for number, sums in runs.by_job.items()]
    return sorted(rows, key=lambda row: (-row[2].thrown_away, -row[2].badput_s, row[0]))[:LISTED]


def _told(sums: Sums, total: Sums, tariff: Tariff) -> dict[str, Any]:
    return run_sums(sums, tariff) | {
        "badput_share": sums.badput_s / total.badput_s if total.badput_s else None,
        "reasons": dict(sorted(sums.reasons.items(), key=lambda row: (-row[1], row[0]))),
    }

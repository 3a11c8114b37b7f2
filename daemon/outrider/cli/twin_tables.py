"""The twin's answer as tables for people."""

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Final

import click

from outrider.cli.printing import MISSING, duration, print_table

if TYPE_CHECKING:
    from outrider.twin.answer import Answer, Ratios
    from outrider.twin.off_policy.check import OffPolicyCheck

_DAY_S: Final = 86_400.0
_LABELS: Final = {
    "energy_ratio": "energy of runs",
    "badput_ratio": "badput",
    "evictions_ratio": "evictions",
    "overhead_mean_ratio": "overhead, mean",
    "overhead_capped_mean_ratio": "overhead up to a day, mean",
    "overhead_p95_ratio": "overhead, p95",
    "overhead_p99_ratio": "overhead, p99",
}


def show_answer(answer: "Answer") -> None:
    """Print an answer: fidelity, the past and the forecast, or why there is none."""
    from outrider.twin.fidelity import BOUNDS

    days = (answer.end_s - answer.begin_s) / _DAY_S
    click.echo(f"window: {days:.1f} days; incumbent: {answer.incumbent or MISSING}")
    if answer.fidelity is not None:
        rows = [
            [name, MISSING if off is None else f"{off:.3g}", f"{BOUNDS[name].most:g}"]
            for name, off in answer.fidelity.parts.items()
        ]
        print_table(
            "the incumbent simulated anew, against what happened", ["part", "off by", "at most"],
            rows,
        )  # fmt: skip
    for machine in answer.fitted.get("dead_machines", ()):
        click.echo(f"note: {machine} is left out: nothing ever started there", err=True)
    if answer.refused is not None:
        click.echo(f"refused: {answer.refused}")
        return
    if answer.longest_deferral_s < inf:
        kept = duration(answer.longest_deferral_s)
        click.echo(f"candidates keep a job for {kept} at most, then the incumbent starts it")
    for policy, why in answer.candidates_refused.items():
        click.echo(f"refused for {policy}: {why}")
    if answer.past:
        _show("what would have been, candidate over incumbent (90 % interval)", answer.past)
    if answer.next_refused is not None:
        click.echo(f"no forecast: {answer.next_refused}")
    if answer.next:
        _show("forecast of the next window, candidate over incumbent (90 %)", answer.next)


def show_checks(checks: "Mapping[str, OffPolicyCheck]") -> None:
    """Print what the recorded starts say by themselves, one step at a time."""
    for policy, check in checks.items():
        if check.refused:
            click.echo(f"by recorded starts, {policy}: nothing: {'; '.join(check.refused)}")
        elif check.difference is not None:
            found = check.difference
            click.echo(
                f"by recorded starts, {policy} would change the share of runs that complete by "
                f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f}) in one step; "
                f"effective sample size {check.effective_n:.0f}"
            )


def _show(title: str, by_policy: "Mapping[str, Ratios]") -> None:
    rows = []
    for name, label in _LABELS.items():
        cells = [label]
        for ratios in by_policy.values():
            ratio = ratios[name]
            cells.append(
                MISSING if ratio is None
                else f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
            )  # fmt: skip
        rows.append(cells)
    print_table(title, ["", *by_policy], rows)

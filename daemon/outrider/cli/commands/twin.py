"""``outrider twin``: estimates of other policies' costs at a site, from its journal."""

from math import inf
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import (
    file_path,
    json_option,
    policy_names,
    preset_by_policy,
    presets_option,
    settings_by_policy,
    settings_option,
)
from outrider.cli.policies_on_traces import refuse_repeats
from outrider.cli.printing import print_json
from outrider.cli.terminal import progress_bar


@click.command(
    "twin", short_help="Estimate what other policies would have cost at a site, and will."
)
@click.argument("file", metavar="FILE", type=file_path(exists=True, dir_okay=False))
@click.option(
    "--policy", "policies", multiple=True, required=True, metavar="NAME",
    shell_complete=policy_names,
    help="A candidate policy; repeat for more. `outrider plugins` lists them.",
)  # fmt: skip
@click.option(
    "--replicates", metavar="N", type=click.IntRange(min=2), default=20, show_default=True,
    help="Simulations of the past under each policy.",
)  # fmt: skip
@click.option(
    "--next", "next_weeks", metavar="WEEKS", type=click.FloatRange(min=0, min_open=True),
    help="Also forecast a future window of this length.",
)  # fmt: skip
@click.option(
    "--longest-deferral", "longest_deferral_h", metavar="HOURS", type=click.FloatRange(min=0),
    help="Longest total time that a policy may defer a job before the batch system starts it: "
    "`longest_deferral_s` of [acting]. [default: no limit]",
)  # fmt: skip
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, show_default=True,
    help="Random seed.",
)  # fmt: skip
@click.option(
    "--off-policy/--no-off-policy", "off_policy", default=True,
    help="Also estimate from recorded starts if the batch system chose at random. [default: yes]",
)  # fmt: skip
@settings_option
@presets_option
@json_option
def command(
    file: Path,
    policies: tuple[str, ...],
    replicates: int,
    next_weeks: float | None,
    longest_deferral_h: float | None,
    seed: int,
    off_policy: bool,
    settings: tuple[str, ...],
    presets: tuple[str, ...],
    as_json: bool,
) -> None:
    """Estimate what other policies would have cost at a site, and will cost.

    Use it before a policy may act. The twin simulates the site from the journal's machines, owner
    sessions, arrivals and run times. First it simulates the current scheduler and compares the
    result with the record. If the two do not agree, or the record is too short, it refuses and
    shows why (exit code 0). Then it simulates every candidate and the current scheduler on the same
    arrivals. The results are ratios, candidate / current scheduler, with 90 % intervals. The
    estimate for the past and the forecast (--next) are separate answers. If the batch system
    chooses machines at random, recorded starts check the twin: see docs/twin-off-policy.md.

    Example:
      outrider twin /var/lib/outrider/journal.sqlite --policy survival --policy bandit --next 8
    """
    from outrider.cli.provenance import provenance
    from outrider.cli.tables import show_answer, show_checks
    from outrider.plugins.finding import make_policy
    from outrider.twin.asking import ask_twin
    from outrider.twin.off_policy.journal import off_policy_of_journal

    refuse_repeats(policies, "--policy")
    given = settings_by_policy(settings, policies)
    preset = preset_by_policy(presets, policies)

    def make(name: str, policy_seed: int) -> Any:
        return make_policy(name, given.get(name, {}), policy_seed, "--policy", preset.get(name))

    for name in policies:  # refuse what is wrong before a long run, not after it
        make(name, seed)
    with progress_bar("simulating") as progress:
        answer = ask_twin(
            file, policies, make, replicates=replicates, next_weeks=next_weeks, seed=seed,
            longest_deferral_s=inf if longest_deferral_h is None else longest_deferral_h * 3_600.0,
            progress=progress,
        )  # fmt: skip
    asked = [make(name, seed) for name in policies] if off_policy else []
    checks = off_policy_of_journal(file, asked, seed=seed) if asked else {}
    if as_json:
        checks_json = {name: check.to_json() for name, check in checks.items()}
        print_json(provenance([file]) | answer.to_json() | {"off_policy": checks_json})
    else:
        show_answer(answer)
        show_checks(checks)

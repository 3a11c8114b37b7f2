"""``outrider twin``: what policies would have cost at a site, and will, by its own journal."""

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


@click.command("twin", short_help="Ask what policies would have cost at a site, and will cost.")
@click.argument("file", metavar="FILE", type=file_path(exists=True, dir_okay=False))
@click.option(
    "--policy", "policies", multiple=True, required=True, metavar="NAME",
    shell_complete=policy_names,
    help="A candidate; give it again for more. `outrider plugins` lists them.",
)  # fmt: skip
@click.option(
    "--replicates", metavar="N", type=click.IntRange(min=2), default=20, show_default=True,
    help="How often the past is simulated under each policy.",
)  # fmt: skip
@click.option(
    "--next", "next_weeks", metavar="WEEKS", type=click.FloatRange(min=0, min_open=True),
    help="Also forecast a window of this length to come.",
)  # fmt: skip
@click.option(
    "--longest-deferral", "longest_deferral_h", metavar="HOURS", type=click.FloatRange(min=0),
    help="For how long a policy may keep a job in the queue, all together, before the batch system "
    "starts it: `longest_deferral_s` of [acting]. Without it, for as long as it likes.",
)  # fmt: skip
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, show_default=True,
    help="Seed of everything that is drawn.",
)  # fmt: skip
@click.option(
    "--off-policy/--no-off-policy", "off_policy", default=True,
    help="Also weigh the recorded starts, where the batch system chose at random. [default: yes]",
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
    """Ask what policies would have cost at a site, and will cost.

    Use it before a policy may act. The site is simulated from what the journal records: machines,
    owners' sessions, arrivals, run times. First the incumbent, the policy that stands for the batch
    system, is held against what happened; where that does not agree, or the record is too thin, it
    refuses and says why (exit code 0). Then every candidate is compared with the incumbent, twin
    against twin, on the same arrivals: ratios, candidate over incumbent, with 90 % intervals.
    What would have been and a forecast (--next) are two different answers. Where the batch system
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
        told = {name: check.to_json() for name, check in checks.items()}
        print_json(provenance([file]) | answer.to_json() | {"off_policy": told})
    else:
        show_answer(answer)
        show_checks(checks)

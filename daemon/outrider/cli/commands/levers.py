"""``outrider levers``: possible changes to a batch system, and the set-up they need."""

import click

from outrider.cli.options import json_option
from outrider.cli.printing import echo, print_json, print_table


@click.command("levers", short_help="List what Outrider can change in a batch system.")
@click.argument("adapter", required=False)
@json_option
def command(adapter: str | None, as_json: bool) -> int:
    """List what Outrider can change in a batch system, and the set-up it needs.

    Use it before the mode canary or active. Without ADAPTER it lists the levers of all adapters
    and the decisions that each applies. With ADAPTER it prints what an admin installs, once, so
    that the batch system honours the adapter's levers. Exit code 1: that adapter has no lever.

    Example:
      outrider levers htcondor > /etc/condor/config.d/50-outrider-leases.config
    """
    from outrider.model.errors import MissingPackageError
    from outrider.plugins.finding import ADAPTERS, find, load_adapter

    if adapter is not None:
        setups = [lever.setup for lever in load_adapter(adapter).levers if lever.setup]
        echo("\n".join(setups) if setups else f"{adapter}: nothing to install", nl=not setups)
        return int(not load_adapter(adapter).levers)
    rows = []
    for name in sorted(find(ADAPTERS)):
        try:
            levers = load_adapter(name).levers
        except MissingPackageError:
            continue
        rows += [(name, x.name, ", ".join(x.actions), x.description) for x in levers]
    columns = ("adapter", "lever", "decisions", "what it does")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table("levers", columns, rows, figures=False)
    return 0

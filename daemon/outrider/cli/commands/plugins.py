"""``outrider plugins``: list of installed plugins with their load state."""

import click

from outrider.cli.options import json_option
from outrider.cli.printing import print_json, print_table


@click.command("plugins", short_help="List adapters, policies, readers, estimators and utilities.")
@json_option
def command(as_json: bool) -> int:
    """List adapters, policies, readers, estimators and utilities.

    Use it to find the names and settings for a configuration, `outrider replay --policy` and
    `outrider ingest --format`. A plugin that cannot be loaded, or was written for another version
    of its interface, is listed with the reason; the others still work. A plugin that needs a
    package that is not installed is "unavailable". Exit code 1: at least one plugin is broken.

    Example:
      outrider plugins --json
    """
    from outrider.cli.installed_plugins import BROKEN, installed

    groups = installed()
    if as_json:
        print_json(groups)
    else:
        for group, plugins in groups.items():
            rows = [
                (p["name"], p["state"], str(p["api_version"] or ""), p["description"] or p["why"])
                for p in plugins
            ]
            print_table(group, ("name", "state", "API", "what it does"), rows, figures=False)
    return int(any(p["state"] == BROKEN for plugins in groups.values() for p in plugins))

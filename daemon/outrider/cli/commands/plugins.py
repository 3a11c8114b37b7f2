"""``outrider plugins``: what is installed, and whether it loads."""

from typing import Any

import click

from outrider.cli.options import json_option
from outrider.cli.printing import print_json, print_table

_OK = "ok"
_BROKEN = "broken"
_UNAVAILABLE = "unavailable"


@click.command("plugins", short_help="List adapters, policies and log readers.")
@json_option
def command(as_json: bool) -> int:
    """List adapters, policies and log readers.

    Use it to see what a configuration, `outrider replay --policy` and `outrider ingest --format`
    can name, with which settings. A plugin that cannot be loaded is listed with the reason, and
    hides no other; one that needs a package that is not installed is "unavailable". Exit code 1:
    one is broken.

    Example:
      outrider plugins --json
    """
    groups = installed()
    if as_json:
        print_json(groups)
    else:
        for group, plugins in groups.items():
            rows = [(p["name"], p["state"], p["description"] or p["why"]) for p in plugins]
            print_table(group, ("name", "state", "what it does"), rows, figures=False)
    return int(any(p["state"] == _BROKEN for plugins in groups.values() for p in plugins))


def installed() -> dict[str, list[dict[str, Any]]]:
    """Every plugin by kind: what it is and whether it loads; a broken one hides no other."""
    from outrider.plugins.finding import ADAPTERS, POLICIES, READERS, find

    return {
        group.rpartition(".")[2]: [_told(group, name, point) for name, point in find(group).items()]
        for group in (ADAPTERS, POLICIES, READERS)
    }


def _told(group: str, name: str, point: Any) -> dict[str, Any]:
    from outrider.model.errors import MissingPackageError, PluginError
    from outrider.plugins.finding import load

    told: dict[str, Any] = {
        "name": name,
        "state": _OK,
        "why": "",
        "description": "",
        "from": point.value,
        "distribution": point.dist.name if point.dist else None,
        "api_version": None,
        "settings": [],
    }
    try:
        plugin = load(group, name)
    except MissingPackageError as error:
        return told | {"state": _UNAVAILABLE, "why": str(error)}
    except PluginError as error:
        return told | {"state": _BROKEN, "why": str(error)}
    told["description"] = plugin.description
    told["api_version"] = getattr(plugin, "api_version", None)
    for fact in ("presets", "features", "needs_oracle", "sees", "levers", "inferred"):
        if hasattr(plugin, fact):
            told[fact] = getattr(plugin, fact)
    record = getattr(plugin, "settings_type", None)
    if record is not None:
        from outrider.service.config.setting_words import settings_of

        told["settings"] = [setting.as_dict() for setting in settings_of(record)]
    return told

"""The plugins that are installed, by kind, and whether each loads."""

from typing import Any, Final

from msgspec import Struct

OK: Final = "ok"
BROKEN: Final = "broken"
UNAVAILABLE: Final = "unavailable"


def installed() -> dict[str, list[dict[str, Any]]]:
    """Every plugin by kind: what it is and whether it loads; a broken one hides no other."""
    from outrider.plugins.finding import CONTRACTS, UTILITIES, find

    plugins = {
        group.rpartition(".")[2]: [_told(group, name, point) for name, point in find(group).items()]
        for group in CONTRACTS
    }
    plugins[UTILITIES.rpartition(".")[2]] += _built_in_utilities()
    return plugins


def _built_in_utilities() -> list[dict[str, Any]]:
    """Outrider's own shapes: part of it and no plugins, listed for whoever looks for a name."""
    from outrider.model.utility import SHAPES
    from outrider.plugins.finding import CONTRACTS, UTILITIES

    version = CONTRACTS[UTILITIES].version
    return [
        _blank(name, f"{shape.__module__}:{shape.__qualname__}", "outrider")
        | _facts(shape)
        | {"api_version": version}
        for name, shape in SHAPES.items()
    ]


def _told(group: str, name: str, point: Any) -> dict[str, Any]:
    from outrider.model.errors import MissingPackageError, PluginError
    from outrider.plugins.finding import declared_version, load

    told = _blank(name, point.value, point.dist.name if point.dist else None)
    try:
        plugin = load(group, name)
    except MissingPackageError as error:
        return told | {"state": UNAVAILABLE, "why": str(error)}
    except PluginError as error:
        return told | {"state": BROKEN, "why": str(error)}
    return told | {"api_version": declared_version(plugin)} | _facts(plugin)


def _blank(name: str, place: str, distribution: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "state": OK,
        "why": "",
        "description": "",
        "from": place,
        "distribution": distribution,
        "api_version": None,
        "settings": [],
    }


def _facts(plugin: type[Any]) -> dict[str, Any]:
    """What a plugin declares: its description, or the first line of a record's, and so on."""
    told: dict[str, Any] = {}
    told["description"] = getattr(plugin, "description", None) or _first_line(plugin)
    if hasattr(plugin, "decides"):
        told["decides"] = plugin.decides.value
    for fact in ("presets", "features", "needs_oracle", "sees", "inferred"):
        if hasattr(plugin, fact):
            told[fact] = getattr(plugin, fact)
    if hasattr(plugin, "levers"):
        told["levers"] = [lever.name for lever in plugin.levers]
    record = getattr(plugin, "settings_type", plugin if issubclass(plugin, Struct) else None)
    if record is not None:
        from outrider.service.config.reading import settings_of

        told["settings"] = [setting.as_dict() for setting in settings_of(record)]
    return told


def _first_line(plugin: type[Any]) -> str:
    return (plugin.__doc__ or "").partition("\n")[0]

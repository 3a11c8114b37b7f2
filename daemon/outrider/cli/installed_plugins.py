"""List of installed plugins by kind, with the load state of each."""

from typing import Any, Final

from msgspec import Struct

OK: Final = "ok"
BROKEN: Final = "broken"
UNAVAILABLE: Final = "unavailable"


def installed() -> dict[str, list[dict[str, Any]]]:
    """Return every plugin by kind with its load state; a broken one hides no other."""
    from outrider.plugins.finding import CONTRACTS, UTILITIES, find

    plugins = {
        group.rpartition(".")[2]: [
            _describe(group, name, point) for name, point in find(group).items()
        ]
        for group in CONTRACTS
    }
    plugins[UTILITIES.rpartition(".")[2]] += _built_in_utilities()
    return plugins


def _built_in_utilities() -> list[dict[str, Any]]:
    """Return Outrider's built-in utility shapes, listed like plugins so that users find them."""
    from outrider.model.utility import SHAPES
    from outrider.plugins.finding import CONTRACTS, UTILITIES

    version = CONTRACTS[UTILITIES].version
    return [
        _new_facts(name, f"{shape.__module__}:{shape.__qualname__}", "outrider")
        | _facts(shape)
        | {"api_version": version}
        for name, shape in SHAPES.items()
    ]


def _describe(group: str, name: str, point: Any) -> dict[str, Any]:
    from outrider.model.errors import MissingPackageError, PluginError
    from outrider.plugins.finding import declared_version, load

    facts = _new_facts(name, point.value, point.dist.name if point.dist else None)
    try:
        plugin = load(group, name)
    except MissingPackageError as error:
        return facts | {"state": UNAVAILABLE, "why": str(error)}
    except PluginError as error:
        return facts | {"state": BROKEN, "why": str(error)}
    return facts | {"api_version": declared_version(plugin)} | _facts(plugin)


def _new_facts(name: str, place: str, distribution: str | None) -> dict[str, Any]:
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
    """Return what a plugin declares: description, presets, features, levers and settings."""
    facts: dict[str, Any] = {}
    facts["description"] = getattr(plugin, "description", None) or _first_line(plugin)
    if hasattr(plugin, "decides"):
        facts["decides"] = plugin.decides.value
    for fact in ("presets", "features", "needs_oracle", "sees", "inferred"):
        if hasattr(plugin, fact):
            facts[fact] = getattr(plugin, fact)
    if hasattr(plugin, "levers"):
        facts["levers"] = [lever.name for lever in plugin.levers]
    record = getattr(plugin, "settings_type", plugin if issubclass(plugin, Struct) else None)
    if record is not None:
        from outrider.service.config.reading import settings_of

        facts["settings"] = [setting.as_dict() for setting in settings_of(record)]
    return facts


def _first_line(plugin: type[Any]) -> str:
    return (plugin.__doc__ or "").partition("\n")[0]

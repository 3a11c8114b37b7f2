"""Making policies, estimators and utilities of names and settings: the same way everywhere."""

from collections.abc import Mapping
from typing import Any

from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import Policy
from outrider.model.errors import ConfigurationError, OutriderError, PluginError, nearest
from outrider.model.places import Place, place_text
from outrider.model.settings import build
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, make_utility
from outrider.plugins.finding import load_estimator, load_policy, utility_shapes
from outrider.plugins.random_streams import stream


def make_policy(
    name: str,
    given: Mapping[str, Any],
    seed: int,
    where: str | Place,
    preset: str | None = None,
    kind: type[Policy] | None = None,
) -> Policy:
    """A policy, ready to be asked.

    Args:
        name: of the plugin.
        given: settings by name; they win over the preset's.
        seed: of its chance.
        where: the place to name in an error.
        preset: one of the policy's named settings.
        kind: its class, where it is no installed plugin; None: the plugin of that name.

    Raises:
        PluginError: the policy cannot be loaded, or fails while it is made.
        ConfigurationError: a setting or the preset is wrong.
    """
    if kind is None:
        kind = load_policy(name)
    settings = dict(given)
    if preset is not None:
        if not isinstance(preset, str) or preset not in kind.presets:
            raise ConfigurationError(
                f'{place_text(where, ["preset"])}: unknown preset "{preset}"; '
                f"{nearest(str(preset), kind.presets)}"
            )
        settings = {**kind.presets[preset], **settings}
    built = build(kind.settings_type, settings, where)
    try:
        return kind(built, stream(seed, f"policy:{name}"))
    except ConfigurationError as error:
        raise ConfigurationError(f"{place_text(where)}: {error}") from error
    except OutriderError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f'{where}: policy "{name}" fails while it is made: {what}') from error


def make_estimator(
    name: str, seed: int, where: str | Place, given: Mapping[str, Any] | None = None
) -> RunTimeEstimator:
    """A run time estimator that has seen nothing yet.

    Args:
        name: of the plugin.
        seed: of its chance.
        where: the place to name in an error.
        given: settings by name.

    Raises:
        PluginError: it cannot be loaded.
        ConfigurationError: a setting is wrong.
    """
    kind = load_estimator(name)
    return kind(build(kind.settings_type, given or {}, where), stream(seed, f"estimator:{name}"))


def make_utilities(
    given: Mapping[str, Mapping[str, Any]], where: str | Place
) -> dict[str, TimeUtility]:
    """Time utility functions by job class: those declared, over the defaults.

    Args:
        given: by class, ``shape`` and its settings.
        where: the place to name in an error; the class is added.

    Raises:
        PluginError: a shape of others cannot be loaded.
        ConfigurationError: an unknown shape, or settings that do not fit it.
    """
    shapes = utility_shapes(str(one.get("shape")) for one in given.values())
    made = {}
    for name, one in given.items():
        at = where.inside(name) if isinstance(where, Place) else f"{where}.{name}"
        made[name] = make_utility(one, at, shapes)
    return {**DEFAULT_UTILITIES, **made}

"""Initial value functions: the shipped one, none, or one that `outrider train` wrote.

A start state is a JSON object with ``encoding`` and ``training`` (``values``: the value function).
`Sarsa.save` returns both, so a saved policy is a start state too; its other fields are ignored,
because another site's open decisions mean nothing here.
"""

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from outrider.api import ConfigurationError
from outrider_policies.sarsa.settings import SarsaSettings

SHIPPED: Final = "shipped"
NONE: Final = "none"
_FILES: Final = {"relative": "start_net.json", "literal": "start_net_literal.json"}


def start_values(settings: SarsaSettings) -> dict[str, Any] | None:
    """The saved value function selected by the settings; None: start untrained.

    Raises:
        ConfigurationError: missing file, not a start state, another encoding, or none is shipped
            for the approximator.
    """
    if settings.start == NONE:
        return None
    if settings.start == SHIPPED:
        if settings.approximator != "mlp":
            raise ConfigurationError(
                f'start = "shipped" is a net, approximator = "{settings.approximator}"; '
                'right would be start = "none", or a file that `outrider train` wrote'
            )
        text = _shipped(_FILES[settings.encoding])
    else:
        text = _read(Path(settings.start))
    where = f'start = "{settings.start}"'
    try:
        state = json.loads(text)
        encoding, values = state["encoding"], state["training"]["values"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{where} is no start state; right would be a file that `outrider train` wrote"
        ) from error
    if encoding != settings.encoding:
        raise ConfigurationError(
            f'{where} was trained with encoding = "{encoding}", not "{settings.encoding}"; right '
            f'would be encoding = "{encoding}"'
        )
    found: dict[str, Any] = values
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigurationError(
            f'start = "{path}" cannot be read: {why}; right would be "shipped", "none" or a file '
            "that `outrider train` wrote"
        ) from error


@cache
def _shipped(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")

"""What the Tab key offers for values that are names of plugins.

Each press of the key is a process: names come from entry points alone, and no plugin is imported.
"""

from collections.abc import Callable
from typing import Final

import click
from click.shell_completion import CompletionItem

Completes = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _plugins(kind: str) -> Completes:
    """Completes the name of a plugin of a kind: as `outrider.plugins.finding` names them."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from importlib.metadata import entry_points

        names = sorted({point.name for point in entry_points(group=f"outrider.{kind}")})
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return complete


policy_names: Final = _plugins("policies")
reader_names: Final = _plugins("readers")
estimator_names: Final = _plugins("estimators")

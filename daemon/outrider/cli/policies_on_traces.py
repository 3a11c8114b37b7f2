"""Options shared by commands that run policies on traces, and their parsed values."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from outrider.cli.options import (
    WORKLOAD_WORDS,
    file_path,
    policy_names,
    preset_by_policy,
    presets_option,
    settings_by_policy,
    settings_option,
    share_table,
    shares_option,
    workload_options,
)
from outrider.model.errors import ConfigurationError

if TYPE_CHECKING:
    from outrider.replay.workload_terms import WorkloadTerms

_WORDS: Final = ("traces", "policies", "settings", "presets", "shares")


class Asked(NamedTuple):
    """Arguments of a command that runs policies on traces, as given.

    Attributes:
        traces: paths of campuses and workload files.
        policies: names, without repeats.
        settings: values of ``--set``.
        presets: values of ``--preset``.
        shares: value of ``--shares``.
        of_workloads: values of `outrider.cli.options.workload_options`.
    """

    traces: tuple[Path, ...]
    policies: tuple[str, ...]
    settings: tuple[str, ...]
    presets: tuple[str, ...]
    shares: str
    of_workloads: Mapping[str, Any]

    def given_to(
        self, policies: Iterable[str]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, str | None]]:
        """Return settings and preset of each policy. Raises `ConfigurationError`."""
        names = tuple(policies)
        return settings_by_policy(self.settings, names), preset_by_policy(self.presets, names)

    def share_table(self) -> dict[str, float]:
        """Return the share of each VO. Raises `ConfigurationError`."""
        return share_table(self.shares)

    def terms(self) -> "WorkloadTerms":
        """Return the options that apply to traces. Raises `ConfigurationError`."""
        from outrider.replay.workload_terms import workload_terms

        return workload_terms(self.of_workloads)


def policies_on_traces(
    policy_help: str, traces: Any = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the arguments of `Asked`, passed as the keyword `asked`.

    Args:
        policy_help: help of the option ``--policy``.
        traces: parameter type of a trace, as from `file_path`; None: any path.

    The command raises `ConfigurationError` if a policy is given twice.
    """
    options = (
        click.argument(
            "traces", nargs=-1, required=True, metavar="TRACE...", type=traces or file_path()
        ),
        click.option(
            "--policy", "policies", multiple=True, required=True, metavar="NAME",
            shell_complete=policy_names, help=policy_help,
        ),
        settings_option,
        presets_option,
        shares_option,
        workload_options,
    )  # fmt: skip

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(**values: Any) -> Any:
            words = {name: values.pop(name) for name in _WORDS}
            of_workloads = {name: values.pop(name) for name in WORKLOAD_WORDS}
            refuse_repeats(words["policies"], "--policy")
            return command(asked=Asked(**words, of_workloads=of_workloads), **values)

        wrapped: Callable[..., Any] = called
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return with_options


def refuse_repeats(words: Iterable[str], option: str) -> None:
    """Raise `ConfigurationError` if a word is given twice."""
    listed = list(words)
    repeated = sorted({word for word in listed if listed.count(word) > 1})
    if repeated:
        raise ConfigurationError(f"{option} {repeated[0]}: given more than once")

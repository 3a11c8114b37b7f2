"""Options that several commands share, and the parsing of their values."""

from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from outrider.formats.option_words import split_pair, toml_value
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.modes import DISCIPLINES

F = TypeVar("F", bound=Callable[..., Any])
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, for programs."
)


def file_path(**facts: Any) -> Any:
    """Return a parameter type for a path; `click` checks it before the command starts."""
    return click.Path(path_type=Path, **facts)


class Seconds(click.FloatRange):
    """Parameter type for seconds; rejects ``nan`` and ``inf``, which pass bounds checks."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a word as `click.FloatRange` does. Raises `click.BadParameter`."""
        seconds = float(super().convert(value, param, ctx))
        if not isfinite(seconds):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


settings_option = click.option(
    "--set", "settings", multiple=True, metavar="POLICY.KEY=VALUE",
    help="One setting of one policy, the value as in TOML: bandit.epsilon=0.05. Repeat for more.",
)  # fmt: skip
presets_option = click.option(
    "--preset", "presets", multiple=True, metavar="POLICY=PRESET",
    help="A named set of settings of one policy: bandit=literal; --set overrides single settings.",
)  # fmt: skip
shares_option = click.option(
    "--shares", default="", metavar="VO=SHARE,...",
    help="Fair shares of the VOs (HTCondor: accounting groups, Slurm: accounts), summing to 1: "
    "physics=.7,biology=.3. [default: equal shares]",
)  # fmt: skip


def settings_by_policy(words: Iterable[str], policies: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of each policy from ``--set policy.key=value``.

    Raises:
        ConfigurationError: a value of another form, or a policy that is not in this run.
    """
    given: dict[str, dict[str, Any]] = {name: {} for name in policies}
    for word in words:
        place, value = split_pair("--set", word, "policy.key=value, as bandit.epsilon=0.05")
        name, dot, key = place.rpartition(".")
        if not dot:
            raise ConfigurationError(
                f'--set "{word}": contains no policy name; expected policy.key=value'
            )
        _known(f"--set {word}", name, given)[key] = toml_value(value)
    return given


def preset_by_policy(words: Iterable[str], policies: Iterable[str]) -> dict[str, str | None]:
    """Return the preset of each policy from ``--preset``. Raises `ConfigurationError`."""
    given: dict[str, str | None] = dict.fromkeys(policies)
    for word in words:
        name, preset = split_pair("--preset", word, "policy=preset, as bandit=literal")
        _known(f"--preset {word}", name, given)
        given[name] = preset
    return given


def _known(where: str, name: str, given: dict[str, Any]) -> Any:
    if name not in given:
        raise ConfigurationError(
            f'{where}: policy "{name}" is not in this run; {nearest(name, given)}'
        )
    return given[name]


def seed_range(text: str, below: int | None = None) -> range:
    """Return the seeds of ``--seeds A-B``, both ends included, all less than `below`.

    Raises `ConfigurationError`.
    """
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise ConfigurationError(f'--seeds "{text}": expected A-B with A <= B, as 0-4')
    if below is not None and int(last) >= below:
        raise ConfigurationError(f'--seeds "{text}": expected seeds below {below}')
    return range(int(first), int(last) + 1)


def share_table(text: str) -> dict[str, float]:
    """Return the shares of ``--shares a=.7,b=.3``. Raises `ConfigurationError`."""
    from outrider.engine.accounting.fairness import check_targets

    shares: dict[str, float] = {}
    for part in text.split(",") if text else ():
        vo, value = split_pair("--shares", part, "VO=share, as physics=.7,biology=.3")
        shares[vo] = _share(part, value)
    check_targets(shares, "--shares")
    return shares


def _share(part: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise ConfigurationError(f'--shares "{part}": expected a number between 0 and 1')
    return share


url_option = click.option(
    "--url", metavar="URL",
    help="Address of the daemon: http://, https:// or unix:PATH. [default: the socket of the "
    "systemd service, else http://127.0.0.1:9690]",
)  # fmt: skip
config_option = click.option(
    "--config", type=file_path(dir_okay=False), metavar="FILE",
    help="The daemon's configuration file, which contains its address.",
)  # fmt: skip
_OF_ASKING = (
    url_option,
    config_option,
    click.option(
        "--token-file", type=file_path(dir_okay=False), metavar="FILE",
        help="File with the token to send. [default: from --config]",
    ),
    click.option(
        "--ca", type=file_path(dir_okay=False), metavar="FILE",
        help="PEM file of the authority that signed the daemon's certificate, or of the "
        "certificate itself. [default: those the system trusts, and the one in --config]",
    ),
)  # fmt: skip


def asking_options(command: F) -> F:
    """Add the options of a daemon's client: keywords `url`, `config`, `token_file` and `ca`."""
    for option in reversed(_OF_ASKING):
        command = option(command)
    return command


class_by_option = click.option(
    "--class-by", metavar="RULE",
    help="Workload files: which jobs are interactive: requested:S (the user requested less), "
    "queue:NAME,..., partition:NAME,..., user:FILE (one user per line), none, or truth:S (the job "
    "ran less; an oracle no site has, for comparison with papers). [default: the queue that the "
    "header calls interactive, else requested:900 if there are requests, else none]",
)  # fmt: skip
_OF_WORKLOADS = (
    click.option(
        "--machines", type=click.IntRange(min=1), metavar="N",
        help="Workload files: number of one-CPU machines, or CPUs of the pool if jobs are "
        "parallel. [default: MaxProcs of the header]",
    ),
    class_by_option,
    click.option(
        "--interactive-below", type=Seconds(min=0), metavar="S",
        help="Workload files: report the waits of jobs that ran less than this separately; "
        "policies do not see it. [default: 900]",
    ),
    click.option(
        "--vo", type=click.Choice(["group", "user", "queue", "partition"]),
        help="Workload files: the column that contains a job's VO. [default: group]",
    ),
    click.option(
        "--group-vos-below", type=float, metavar="RATIO",
        help="Workload files: VOs that request less than this share of all CPU-seconds are merged "
        "into one, other. [default: 0]",
    ),
    click.option(
        "--estimates", metavar="RULE",
        help="Run times that policies see: exact, requested, lognormal:SIGMA or learned; for a "
        "campus requested or learned. exact and lognormal use the true run times, and every output "
        "says so. [default: requested; exact for a workload file without requests]",
    ),
    click.option(
        "--backfill", type=click.Choice(["none", "easy"]),
        help="The same as --discipline strict (none) or easy.",
    ),
    click.option(
        "--discipline", type=click.Choice(DISCIPLINES),
        help="Which jobs may start before one that does not fit: all (first_fit), none (strict), "
        "those that do not delay it (easy; easy_sjbf tries the shortest estimate first), or those "
        "that delay no earlier job (conservative). [default: strict; first_fit for a campus]",
    ),
    click.option(
        "--utility", "utilities", multiple=True, metavar="CLASS=SHAPE[:K=V,...]",
        help="Workload files: utility of completing a job of a class, such as "
        "batch=linear:zero_at=3. [default: interactive=interactive, batch=batch]",
    ),
)  # fmt: skip
WORKLOAD_WORDS = (
    "machines", "class_by", "interactive_below", "vo", "group_vos_below", "estimates", "backfill",
    "discipline", "utilities",
)  # fmt: skip
"""Keyword names of these options."""


def workload_options(command: F) -> F:
    """Add the workload options to a command, as keywords for `outrider.replay.workload_terms`."""
    for option in reversed(_OF_WORKLOADS):
        command = option(command)
    return command


# -- word completion -------------------------------------------------------------------------------
# Shell completion of plugin names.
#
# Each press of the Tab key starts a process, so names come from entry points alone and no plugin is
# imported.

Completes = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _plugins(kind: str) -> Completes:
    """Return a completer for plugin names of a kind, as `outrider.plugins.finding` names them."""

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

"""Options that several commands share, and words of the command line turned into values."""

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
    """A parameter type: a path; `click` checks what is asked of it before anything starts."""
    return click.Path(path_type=Path, **facts)


class Seconds(click.FloatRange):
    """A parameter type: a number of seconds; neither ``nan`` nor ``inf``, which bounds let pass."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As `click.FloatRange`. Raises `click.BadParameter`."""
        seconds = float(super().convert(value, param, ctx))
        if not isfinite(seconds):
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return seconds


settings_option = click.option(
    "--set", "settings", multiple=True, metavar="POLICY.KEY=VALUE",
    help="One setting of one policy, the value as in TOML: bandit.epsilon=0.05. Give it again for "
    "more.",
)  # fmt: skip
presets_option = click.option(
    "--preset", "presets", multiple=True, metavar="POLICY=PRESET",
    help="A named bundle of settings of one policy: bandit=literal; a single --set wins over it.",
)  # fmt: skip
shares_option = click.option(
    "--shares", default="", metavar="VO=SHARE,...",
    help="Fair shares of the VOs (HTCondor: accounting groups, Slurm: accounts), summing to 1: "
    "physics=.7,biology=.3. [default: equal shares]",
)  # fmt: skip


def settings_by_policy(words: Iterable[str], policies: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What ``--set policy.key=value`` gives to each policy.

    Raises:
        ConfigurationError: a word of another form, or a policy that is not in this run.
    """
    given: dict[str, dict[str, Any]] = {name: {} for name in policies}
    for word in words:
        place, value = split_pair("--set", word, "policy.key=value, as bandit.epsilon=0.05")
        name, dot, key = place.rpartition(".")
        if not dot:
            raise ConfigurationError(f'--set "{word}": names no policy; expected policy.key=value')
        _known(f"--set {word}", name, given)[key] = toml_value(value)
    return given


def preset_by_policy(words: Iterable[str], policies: Iterable[str]) -> dict[str, str | None]:
    """What ``--preset policy=name`` asks of each policy. Raises `ConfigurationError`."""
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
    """The seeds of ``--seeds A-B``, both ends included, all less than `below`.

    Raises `ConfigurationError`.
    """
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise ConfigurationError(f'--seeds "{text}": expected A-B with A <= B, as 0-4')
    if below is not None and int(last) >= below:
        raise ConfigurationError(f'--seeds "{text}": expected seeds below {below}')
    return range(int(first), int(last) + 1)


def share_table(text: str) -> dict[str, float]:
    """The shares of ``--shares a=.7,b=.3``. Raises `ConfigurationError`."""
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
    help="Where the daemon answers: http://, https:// or unix:PATH. [default: the "
    "socket of the systemd service, else http://127.0.0.1:9690]",
)  # fmt: skip
config_option = click.option(
    "--config", type=file_path(dir_okay=False), metavar="FILE",
    help="The daemon's configuration file; it says where the daemon listens.",
)  # fmt: skip
_OF_ASKING = (
    url_option,
    config_option,
    click.option(
        "--token-file", type=file_path(dir_okay=False), metavar="FILE",
        help="File with the token to send. [default: that of --config]",
    ),
    click.option(
        "--ca", type=file_path(dir_okay=False), metavar="FILE",
        help="PEM file of the authority that signed the daemon's certificate, or of the "
        "certificate itself. [default: those the system trusts, and that of --config]",
    ),
)  # fmt: skip


def asking_options(command: F) -> F:
    """A command that asks a daemon; `url`, `config`, `token_file` and `ca` come as keywords."""
    for option in reversed(_OF_ASKING):
        command = option(command)
    return command


class_by_option = click.option(
    "--class-by", metavar="RULE",
    help="Workload files: what makes a job interactive: requested:S (its user asked for less), "
    "queue:NAME,..., partition:NAME,..., user:FILE (one user a line), none, or truth:S (it ran "
    "less: no user could have said so; for papers' proxies). [default: the queue where the header "
    "names one interactive, else requested:900 where there are requests, else none]",
)  # fmt: skip
_OF_WORKLOADS = (
    click.option(
        "--machines", type=click.IntRange(min=1), metavar="N",
        help="Workload files: one-CPU machines, or CPUs of the pool where jobs are parallel. "
        "[default: MaxProcs of the header]",
    ),
    class_by_option,
    click.option(
        "--interactive-below", type=Seconds(min=0), metavar="S",
        help="Workload files: report the waits of jobs that ran strictly less by themselves; no "
        "policy is told. [default: 900]",
    ),
    click.option(
        "--vo", type=click.Choice(["group", "user", "queue", "partition"]),
        help="Workload files: the column that says which VO a job belongs to. [default: group]",
    ),
    click.option(
        "--group-vos-below", type=float, metavar="RATIO",
        help="Workload files: VOs whose users ask for less than this share of all CPU-seconds "
        "count as one, other. [default: 0]",
    ),
    click.option(
        "--estimates", metavar="RULE",
        help="What policies are told of run times: exact, requested, lognormal:SIGMA or learned; "
        "of a campus requested or learned. exact and lognormal tell the truth, and every output "
        "says so. [default: requested; of a workload file without requests exact]",
    ),
    click.option(
        "--backfill", type=click.Choice(["none", "easy"]),
        help="The same as --discipline strict (none) or easy.",
    ),
    click.option(
        "--discipline", type=click.Choice(DISCIPLINES),
        help="Who may start before a job that does not fit: everybody (first_fit), nobody "
        "(strict), those that do not delay it (easy; easy_sjbf: tried shortest estimate first), or "
        "none before them (conservative). "
        "[default: strict; of a campus first_fit]",
    ),
    click.option(
        "--utility", "utilities", multiple=True, metavar="CLASS=SHAPE[:K=V,...]",
        help="Workload files: what completing a job of a class is worth, as "
        "batch=linear:zero_at=3. [default: interactive=interactive, batch=batch]",
    ),
)  # fmt: skip
WORKLOAD_WORDS = (
    "machines", "class_by", "interactive_below", "vo", "group_vos_below", "estimates", "backfill",
    "discipline", "utilities",
)  # fmt: skip
"""Keywords as which these options come."""


def workload_options(command: F) -> F:
    """A command with these options; they come as keywords for `outrider.replay.workload_terms`."""
    for option in reversed(_OF_WORKLOADS):
        command = option(command)
    return command


# -- word completion -------------------------------------------------------------------------------
# What the Tab key offers for values that are names of plugins.
#
# Each press of the key is a process: names come from entry points alone, and no plugin is imported.

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

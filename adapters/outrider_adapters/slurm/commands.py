"""Slurm's commands, with output fields that users cannot forge.

What users write into a job (its name, comment, folder, command) may hold anything, so no such field
is requested. One remains: the account, which may be any text where there is no slurmdbd, including
line ends and separators. So fields are separated by a random word, chosen for each command.
"""

import contextlib
import os
import pwd
import re
import secrets
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, TypeVar

from outrider_adapters.polling import CommandError, Commands
from outrider_adapters.slurm.settings import SlurmSettings

SEPARATOR: Final = "\x1f"
_KEPT_S: Final = 2.0
"""Seconds for which an answer that explains jobs serves others, too, at least."""
_REST: Final = 30.0
"""The same as a multiple of the time that the answer took."""
T = TypeVar("T")
_OURS: Final = (
    "SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SBATCH_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT",
)  # fmt: skip
"""Prefixes of environment variables that change what the commands print."""


class SlurmCommands(Commands):
    """Runner of Slurm's commands, one at a time.

    Args:
        settings: select the Slurm.
    """

    def __init__(self, settings: SlurmSettings) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        # Unix seconds have no ambiguous time zone; the tasks of an array are listed in full
        environment |= {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
        if settings.config is not None:
            environment["SLURM_CONF"] = settings.config
        super().__init__(settings.commands, environment, settings.answer_within_s)

    def rows(self, fields: Sequence[str], *words: str) -> list[str]:
        """Return the rows of ``squeue -O`` with these fields, each followed by a `SEPARATOR`.

        Line ends and separators within a field are replaced by a blank.

        Raises:
            CommandError: as `run`, or the output ends in the middle of a row.
        """
        word = f"~{secrets.token_hex(8)}~"
        wanted = ",".join(f"{field}:{word}" for field in fields)
        shown = self.run("squeue", "--noconvert", *words, "-h", "-O", wanted)
        if shown and (not shown.endswith("\n") or shown.count(word) % len(fields)):
            # the jobs that are not in it would seem to have left
            raise CommandError("squeue: its output ends in the middle of a row")
        return rows_of(shown, word, len(fields))


def rows_of(shown: str, word: str, fields_n: int) -> list[str]:
    r"""Split the output of ``squeue -O`` into rows, with `SEPARATOR` in place of the random word.

    >>> rows_of("7~x~ann~x~\n8~x~b\nob~x~\n", "~x~", 2) == ["7\x1fann\x1f", "8\x1fb ob\x1f"]
    True

    Args:
        shown: the output.
        word: the word that follows each field, and occurs nowhere else.
        fields_n: how many fields a row has.
    """
    shown = shown.replace(SEPARATOR, " ")
    lines = shown.rstrip("\n").split("\n")
    if any(line.count(word) != fields_n for line in lines):  # a line end in a field
        values = shown.replace("\n", " ").split(word)[:-1]
        rows = (values[at : at + fields_n] for at in range(0, len(values), fields_n))
        lines = ["".join(f"{value}{word}" for value in row).lstrip() for row in rows]
    return [line.replace(word, SEPARATOR) for line in lines]


class RecentAnswers:
    """Answers of Slurm that explain jobs, kept for a moment, which limits queries to it.

    A slow answer is kept longer, so that however much is asked, the controller is busy with it for
    a small share of the time.

    Args:
        commands: of the Slurm.
        clock: seconds that only grow.
    """

    def __init__(
        self, commands: SlurmCommands, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._commands = commands
        self._clock = clock
        self._kept: dict[tuple[str, ...], tuple[float, bool, Any]] = {}

    def shown(self, *words: str) -> str:
        """Return the output of a command, at most a moment old. Raises `CommandError`."""
        return self.kept(words, lambda: self._commands.run(*words))

    def kept(self, key: tuple[str, ...], ask: Callable[[], T]) -> T:
        """Return an answer; ask for it if there is none, or it is too old."""
        began_s = self._clock()
        until_s, _, answer = self._kept.get(key, (-inf, False, None))
        if began_s >= until_s:
            answer = ask()
            now_s = self._clock()
            rests_s = _REST * (now_s - began_s)
            self._kept[key] = now_s + max(_KEPT_S, rests_s), rests_s > _KEPT_S, answer
        found: T = answer
        return found

    def forget(self) -> None:
        """Forget the answers that came quickly; slow ones are kept for their time."""
        self._kept = {key: kept for key, kept in self._kept.items() if kept[1]}


# -- rights ----------------------------------------------------------------------------------------
# Permissions: what Slurm shows this user, and lets it change. An empty queue may be a hidden one.

_HIDES = {"jobs", "nodes", "all"}
_LEVELS = {"operator", "administrator"}


def hidden_from_us(commands: SlurmCommands, config: dict[str, str]) -> str:
    """Return a sentence about what Slurm hides from this user; empty if nothing.

    Where ``PrivateData`` hides jobs or nodes, an ordinary user sees none of other users', and gets
    no error.

    Args:
        commands: of the Slurm.
        config: its configuration.
    """
    hidden = sorted(_HIDES & set(re.split(r"[,\s]+", config.get("PrivateData", "").lower())))
    if not hidden or _is_operator(commands, config):
        return ""
    user = _user()
    return (
        f"PrivateData={','.join(hidden)} hides other users' jobs or nodes from {user}; use: "
        f"{_remedy(user)}"
    )


def changes_nothing(commands: SlurmCommands, config: dict[str, str]) -> str:
    """Return why this user cannot change other users' jobs; empty if it can.

    Args:
        commands: of the Slurm.
        config: its configuration.
    """
    if _is_operator(commands, config):
        return ""
    user = _user()
    found = f"{user} may not change other users' jobs"
    if not _has_accounting(config):
        return (
            f"{found}; expected, without slurmdbd: outrider-slurm.socket, whose service runs "
            f'as {_slurm_user(config)}, and helper = "/run/outrider-slurm.sock"'
        )
    return f"{found}; use: {_remedy(user)}"


def acting_users(commands: SlurmCommands, config: dict[str, str]) -> frozenset[str]:
    """Return this user and the users who may change all users' jobs, as far as Slurm reports them.

    Args:
        commands: of the Slurm.
        config: its configuration.
    """
    users = {_user(), "root", _slurm_user(config)}
    if _has_accounting(config):
        for level in ("Operator", "Administrator"):
            words = ("-n", "-P", "show", "user", "where", f"adminlevel={level}", "format=user")
            with contextlib.suppress(CommandError):  # then only the users above are known
                users |= set(commands.run("sacctmgr", *words).split())
    return frozenset(users)


def _slurm_user(config: dict[str, str]) -> str:
    return config.get("SlurmUser", "").partition("(")[0]


def _has_accounting(config: dict[str, str]) -> bool:
    return config.get("AccountingStorageType", "").endswith("slurmdbd")


def _is_operator(commands: SlurmCommands, config: dict[str, str]) -> bool:
    is_slurms_own = _slurm_user(config) == _user()
    return os.geteuid() == 0 or is_slurms_own or _has_level(commands, _user())


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a dynamic user of systemd, or a user of a container
        return str(os.geteuid())


def _remedy(user: str) -> str:
    return f"sacctmgr modify user {user} set adminlevel=Operator"


def _has_level(commands: SlurmCommands, user: str) -> bool:
    try:
        level = commands.run("sacctmgr", "-n", "-P", "show", "user", user, "format=adminlevel")
    except CommandError:
        return False  # no accounting database: only SlurmUser and root may
    return level.strip().lower() in _LEVELS

"""What Slurm shows this user, and lets it change: an empty queue may be one that is hidden."""

import contextlib
import os
import pwd
import re

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.commands import SlurmCommands

_HIDES = {"jobs", "nodes", "all"}
_LEVELS = {"operator", "administrator"}


def hidden_from_us(commands: SlurmCommands, config: dict[str, str]) -> str:
    """What Slurm hides from this user, as a sentence; empty: nothing.

    Where ``PrivateData`` hides jobs or nodes, an ordinary user is shown none of the others', and no
    error.

    Args:
        commands: of the Slurm.
        config: its configuration.
    """
    hidden = sorted(_HIDES & set(re.split(r"[,\s]+", config.get("PrivateData", "").lower())))
    if not hidden or _is_operator(commands, config):
        return ""
    user = _user()
    return (
        f"PrivateData={','.join(hidden)} hides other users' jobs or nodes from {user}; right would "
        f"be: {_remedy(user)}"
    )


def changes_nothing(commands: SlurmCommands, config: dict[str, str]) -> str:
    """Why this user cannot change other users' jobs, as a sentence; empty: it can.

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
            f"{found}; right would be, without slurmdbd: outrider-slurm.socket, whose service runs "
            f'as {_slurm_user(config)}, and helper = "/run/outrider-slurm.sock"'
        )
    return f"{found}; right would be: {_remedy(user)}"


def acting_users(commands: SlurmCommands, config: dict[str, str]) -> frozenset[str]:
    """The users who may change everybody's jobs, as far as Slurm tells, and this one.

    Args:
        commands: of the Slurm.
        config: its configuration.
    """
    users = {_user(), "root", _slurm_user(config)}
    if _has_accounting(config):
        for level in ("Operator", "Administrator"):
            words = ("-n", "-P", "show", "user", "where", f"adminlevel={level}", "format=user")
            with contextlib.suppress(CommandError):  # then those above are all that is known
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
    except KeyError:  # a user of systemd's, or of a container
        return str(os.geteuid())


def _remedy(user: str) -> str:
    return f"sacctmgr modify user {user} set adminlevel=Operator"


def _has_level(commands: SlurmCommands, user: str) -> bool:
    try:
        level = commands.run("sacctmgr", "-n", "-P", "show", "user", user, "format=adminlevel")
    except CommandError:
        return False  # no accounting database: only SlurmUser and root may
    return level.strip().lower() in _LEVELS

"""What Slurm shows this user, and lets it change: an empty queue may be one that is hidden."""

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
    if not config.get("AccountingStorageType", "").endswith("slurmdbd"):
        who = config.get("SlurmUser", "").partition("(")[0]
        return f"{found}; right would be, without slurmdbd: let Outrider run as {who}"
    return f"{found}; right would be: {_remedy(user)}"


def _is_operator(commands: SlurmCommands, config: dict[str, str]) -> bool:
    is_slurms_own = config.get("SlurmUser", "").partition("(")[0] == _user()
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

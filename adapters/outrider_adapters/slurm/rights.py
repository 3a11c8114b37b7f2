"""Whether Slurm shows this user everything: an empty queue may be one that is hidden."""

import os
import pwd
import re

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.commands import SlurmCommands

_HIDES = {"jobs", "nodes", "all"}
_SEES_ALL = {"operator", "administrator"}


def hidden_from_us(commands: SlurmCommands, config: dict[str, str]) -> str:
    """What Slurm hides from this user, as a sentence; empty: nothing.

    Where ``PrivateData`` hides jobs or nodes, an ordinary user is shown none of the others', and no
    error.

    Args:
        commands: of the Slurm.
        config: its configuration.
    """
    hidden = sorted(_HIDES & set(re.split(r"[,\s]+", config.get("PrivateData", "").lower())))
    if not hidden or os.geteuid() == 0:
        return ""
    user = pwd.getpwuid(os.geteuid()).pw_name
    if config.get("SlurmUser", "").partition("(")[0] == user or _sees_all(commands, user):
        return ""
    return (
        f"PrivateData={','.join(hidden)} hides other users' jobs or nodes from {user}; right would "
        f"be: sacctmgr modify user {user} set adminlevel=Operator"
    )


def _sees_all(commands: SlurmCommands, user: str) -> bool:
    try:
        level = commands.run("sacctmgr", "-n", "-P", "show", "user", user, "format=adminlevel")
    except CommandError:
        return False  # no accounting database: only SlurmUser and root see all
    return level.strip().lower() in _SEES_ALL

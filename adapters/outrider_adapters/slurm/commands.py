"""Slurm's commands, and their output in words that users cannot write.

What users write into a job (its name, comment, folder, command) may hold anything, so no field of
it is ever asked for. Fields are parted by a control character that neither Slurm nor an
administrator uses in the others.
"""

import os
from collections.abc import Sequence
from typing import Final

from outrider_adapters.polling import Commands
from outrider_adapters.slurm.settings import SlurmSettings

SEPARATOR: Final = "\x1f"

_OURS: Final = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
"""Beginnings of variables by which a shell changes what the commands print."""


class SlurmCommands(Commands):
    """Runs them, one at a time.

    Args:
        settings: which Slurm.
    """

    def __init__(self, settings: SlurmSettings) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        # Unix seconds leave no doubt of the zone; the tasks of an array are told in full
        environment |= {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
        if settings.config is not None:
            environment["SLURM_CONF"] = settings.config
        super().__init__(settings.commands, environment, settings.answer_within_s)

    def rows(self, fields: Sequence[str], *words: str) -> list[str]:
        """The lines of ``squeue`` with these fields of its ``-O``, each behind a `SEPARATOR`.

        Raises:
            CommandError: as `run`.
        """
        wanted = ",".join(f"{field}:{SEPARATOR}" for field in fields)
        shown = self.run("squeue", "--noconvert", *words, "-h", "-O", wanted)
        return shown.rstrip("\n").split("\n")

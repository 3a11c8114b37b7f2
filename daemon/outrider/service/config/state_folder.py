"""Where a daemon keeps its state: asked by commands that need nothing else of it."""

import os
from pathlib import Path
from typing import Final

from outrider.service.config.reading import ReadConfig

JOURNAL_NAME: Final = "journal.sqlite"
TOKEN_NAME: Final = "token"  # noqa: S105 - the name of a file
"""The file whose token shows users' names; `outrider token` makes it."""


def state_folder(config: ReadConfig) -> Path:
    """The state directory: systemd's, else the configured one."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given or config.config.state_dir)

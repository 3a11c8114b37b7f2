"""Where a daemon keeps its state: asked by commands that need nothing else of it."""

import os
from pathlib import Path

from outrider.service.config.loaded import LoadedConfig


def state_folder(loaded: LoadedConfig) -> Path:
    """The state directory: systemd's, else the configured one."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given or loaded.config.state_dir)

"""A clock for a whole daemon process, ahead of this machine's by the seconds in a file."""

from pathlib import Path

_SITE_CUSTOMISATION = """\
import time
from pathlib import Path

_read, _ahead = time.time, Path({ahead!r})
time.time = lambda: _read() + float(_ahead.read_text())
"""


class WrongClock:
    """Put ahead and back while a daemon runs.

    Args:
        folder: for its files.

    Attributes:
        environ: what a daemon's environment needs for it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ahead = folder / "ahead"
        self.put(0.0)
        (folder / "sitecustomize.py").write_text(_SITE_CUSTOMISATION.format(ahead=str(self._ahead)))
        self.environ = {"PYTHONPATH": str(folder)}

    def put(self, ahead_s: float) -> None:
        """Set the clock ahead by so many seconds from now on."""
        fresh = self._ahead.with_suffix(".new")
        fresh.write_text(str(ahead_s))
        fresh.replace(self._ahead)

"""Site of a soak: two logs of one access point, one replaceable log, and a broker."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.peers.mosquitto import Mosquitto, require_mosquitto
from tests.service.restarting import log_writer

RATE: Final = 1_000
CONFIG: Final = """\
state_dir = "{folder}/state"
listen = "127.0.0.1:0"
snapshot_every_s = 5.0
stale_after_s = 5.0

[adapters.jobs]
type = "logtail"
paths = ["{logs}/jobs.log"]
start_at = "beginning"
system = "ap1"

[adapters.users]
type = "logtail"
paths = ["{logs}/users.log"]
start_at = "beginning"
system = "ap2"

[adapters.other]
type = "logtail"
paths = ["{logs}/other.log"]
start_at = "beginning"

[adapters.meters]
type = "mqtt"
host = "127.0.0.1"
port = {broker.port}
username = "outrider"
password_file = "{password_file}"
max_machines = 100

[policies.bandit]
[policies.lowest_watts]
"""


class SoakSite:
    """Logs in a folder, of which a process of its own writes one at a steady pace.

    Args:
        folder: of the soak.
        seed: of all that is drawn.
        seconds: how long the writer writes, if nobody stops it.

    Attributes:
        jobs: the log to which the writer writes `RATE` records a second.
        users: the log to which hostile users write.
        other: the path that is at times no log.
        counts: what the writer wrote, as JSON by kind, once it has stopped.
        spared_snapshots: how many of the oldest stay whole at the next attack on them.
        broker: to which machines may publish what their meters say.
    """

    def __init__(self, folder: Path, seed: int, seconds: float) -> None:
        logs = folder / "logs"
        logs.mkdir()
        self.folder = folder
        self.jobs, self.users, self.other = (
            logs / f"{name}.log" for name in ("jobs", "users", "other")
        )
        for log in (self.jobs, self.users, self.other):
            log.touch()
        self.counts = folder / "counts.json"
        words = [self.jobs, self.counts, seed, RATE, seconds]
        self._command = [sys.executable, str(Path(log_writer.__file__)), *map(str, words)]
        self._writer: subprocess.Popen[bytes] | None = None
        self.spared_snapshots = 0
        self.broker = Mosquitto(require_mosquitto(), folder / "broker", saves_each_change=False)

    def __enter__(self) -> Self:
        self.broker.start()
        self._writer = subprocess.Popen(self._command)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._writer is not None and self._writer.poll() is None:
            self._writer.kill()
            self._writer.wait()
        self.broker.stop()

    def finish(self) -> None:
        """Stop the writer once every job has ended."""
        assert self._writer is not None
        self._writer.terminate()
        assert self._writer.wait(120) == 0

    def config(self, name: str) -> Path:
        """The configuration of a daemon with a state directory of its own on these logs."""
        folder = self.folder / name
        folder.mkdir()
        path = folder / "outrider.toml"
        password_file = self.broker.password_file("outrider")
        path.write_text(
            CONFIG.format(
                folder=folder, logs=self.jobs.parent, broker=self.broker,
                password_file=password_file,
            )
        )  # fmt: skip
        return path

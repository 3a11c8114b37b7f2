"""Real systemd as PID 1, in a container whose root is a temporary overlay.

Nothing is installed or changed on the machine itself. All mounts are made in a mount namespace of
the container's own, so they end with it however it ends, and its control groups lie below a group
that only it has. It is never killed: it is asked to power off, also when this process dies.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.conftest import REPOSITORY
from tests.fixtures.patience import patient
from tests.peers.as_a_service.rules import hierarchies
from tests.peers.presence import PEERS_DIR, program_path

BOOTED_WITHIN_S: Final = patient(60.0)
OFF_WITHIN_S: Final = 60.0
COMMAND_WITHIN_S: Final = 150.0
HANGS_AFTER_S: Final = patient(150.0)
"""Timeout of waits: they take seconds, but other tests can slow the machine down."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UNITS: Final = "etc/systemd/system"
_HERE: Final = Path("/")
_LEGACY_GROUPS: Final = (
    "systemd.unified_cgroup_hierarchy=0", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
)  # fmt: skip
"""Words for systemd 256 and later, which refuses to boot on control groups of version 1."""
_UNWANTED: Final = (
    "getty@.service", "console-getty.service", "serial-getty@.service", "systemd-logind.service",
    "systemd-networkd.service", "systemd-resolved.service", "systemd-timesyncd.service",
)  # fmt: skip
# Where only the loopback has addresses, the C library resolves no name, not even "127.0.0.1" to
# programs that ask as Slurm's do: one address more, of those for documentation.
_ADDRESS: Final = """\
[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/ip addr add 198.51.100.1/32 dev lo
"""
# As Debian's installer writes it: HTCondor's library, once imported, looks for two minutes for the
# address of a host whose own name leads nowhere.
_HOSTS: Final = "127.0.0.1 localhost\n127.0.1.1 machine\n"
# Waits for a line before it boots, so that files can be put into its root.
_BEGIN: Final = """
set -e
mount --make-rprivate /
mount -t tmpfs -o size=1g,mode=755 tmpfs "$1"
mkdir "$1/up" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/up,workdir=$1/work" "$1/root"
echo made
read -r line
[ "$line" = boot ]
shift 2
exec "$@"
"""


def missing_reason() -> str | None:
    """Return a missing program that booting a systemd needs, or None if all are there."""
    if os.geteuid() != 0:
        return "only root can boot it"
    for program in ("unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(program, path=PATH) is None:
            return f"{program} is not installed"
    if not Path("/lib/systemd/systemd").exists():
        return "systemd is not installed"
    if program_path("systemd-nspawn") is None:
        return f"systemd-nspawn is neither on the PATH nor below {PEERS_DIR}"
    return None


class Machine:
    """Container: created, filled below `root`, booted, powered off.

    Attributes:
        root: its root folder as this process sees it, before and after it is booted.
    """

    def __init__(self, folder: Path, base: Path = _HERE) -> None:
        """Create its root; boot nothing yet.

        Args:
            folder: a new folder, for its root and what its console says.
            base: folder of the system that it is made of, which stays as it is: this machine's own,
                or another Debian with a systemd.
        """
        nspawn = program_path("systemd-nspawn")
        assert nspawn is not None, "ask missing_reason first"
        (folder / "over").mkdir(parents=True)
        self._console = folder / "console.log"
        self._groups: list[Path] = []
        self._leader = 0
        with self._console.open("wb") as console:
            # were this process killed, nspawn would be told to power off, as at the end of a test
            self._nspawn = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "unshare", "--mount", "bash", "-c", _BEGIN,
                 "begin", str(folder / "over"), str(base), str(nspawn),
                 *_words(folder / "over/root", base)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=console,
                env={"PATH": PATH, "LANG": "C.UTF-8"},
            )  # fmt: skip
        assert self._nspawn.stdout is not None
        if self._nspawn.stdout.readline() != b"made\n":
            self.stop()
            raise RuntimeError(f"no root was made: {self._said()}")
        self.root = Path(f"/proc/{self._nspawn.pid}/root{folder / 'over/root'}")
        self._quieten()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file below its root."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def boot(self) -> None:
        """Boot it; return when its systemd reports that it is up.

        Raises:
            RuntimeError: it ended, or was not up in time; the message says what it said.
        """
        for place, group in hierarchies():
            own = place / group.lstrip("/") / f"outrider-machine-{self._nspawn.pid}"
            own.mkdir()
            self._groups.append(own)
            (own / "cgroup.procs").write_text(f"{self._nspawn.pid}\n")
        assert self._nspawn.stdin is not None
        self._nspawn.stdin.write(b"boot\n")
        self._nspawn.stdin.close()
        self.wait_until("end of the boot", self._is_up, BOOTED_WITHIN_S)

    def run(self, *words: object, fails: bool = False) -> str:
        """Run a command in it as root; return what it printed on standard output.

        Raises:
            RuntimeError: it ended with another exit code than 0; not with `fails`.
        """
        done = subprocess.run(
            ["nsenter", "-t", str(self._leader), "-a", "--", *map(str, words)],
            env={"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False,
        )  # fmt: skip
        if done.returncode != 0 and not fails:
            answer_text = f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
            raise RuntimeError(
                f"{' '.join(map(str, words))} ended with {done.returncode}: {answer_text}"
            )
        return done.stdout

    def inside(self, path: str) -> Path:
        """Return a path of the booted machine for this process, with what is mounted there."""
        return Path(f"/proc/{self._leader}/root") / path.lstrip("/")

    def wait_until(
        self, what: str, holds: Callable[[], bool], within_s: float = HANGS_AFTER_S
    ) -> None:
        """Wait until a condition holds, looking ten times a second.

        Raises:
            TimeoutError: it did not in time; the message ends with what the container said.
        """
        deadline_s = time.monotonic() + within_s
        while not holds():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"no {what} within {within_s:g} s; {self._said()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Power it off, and remove its control groups. Raises `RuntimeError`: it does not end."""
        for pipe in (self._nspawn.stdin, self._nspawn.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        if self._nspawn.poll() is None:
            self._nspawn.send_signal(signal.SIGTERM)  # nspawn makes a power-off of it
        try:
            self._nspawn.wait(OFF_WITHIN_S)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(
                f"nspawn {self._nspawn.pid} does not power off; it is left alone, for were it "
                f"killed, the systemd in it would go on: {self._said()}"
            ) from error
        for own in self._groups:
            for folder, _, _ in os.walk(own, topdown=False):
                Path(folder).rmdir()
        self._groups.clear()

    def _quieten(self) -> None:
        """Disable in the container what this machine has enabled."""
        units = self.root / UNITS
        for folder in [*units.glob("*.wants"), *units.glob("*.requires")]:
            shutil.rmtree(folder)
        timers = [one.name for one in (self.root / "lib/systemd/system").glob("*.timer")]
        units.mkdir(parents=True, exist_ok=True)
        for name in (*_UNWANTED, *timers):
            (units / name).unlink(missing_ok=True)
            (units / name).symlink_to("/dev/null")
        self.put(f"{UNITS}/one-address.service", _ADDRESS)
        self.want("one-address.service", f"/{UNITS}/one-address.service", "sysinit.target")
        for file in ("usr/sbin/policy-rc.d", "var/lib/man-db/auto-update"):
            (self.root / file).unlink(missing_ok=True)  # packages start what they bring; no manuals
        named = {"hostname": "machine\n", "hosts": _HOSTS, "machine-id": "", "fstab": ""}
        for file, text in named.items():
            (self.root / "etc" / file).unlink(missing_ok=True)
            self.put(f"etc/{file}", text)

    def want(self, unit: str, file: str, target: str = "multi-user.target") -> None:
        """Start a unit at the boot, as if it were enabled."""
        wants = self.root / UNITS / f"{target}.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / unit).symlink_to(file)

    def _is_up(self) -> bool:
        if self._nspawn.poll() is not None:
            raise RuntimeError(f"nspawn ended with {self._nspawn.returncode}: {self._said()}")
        self._leader = self._leader or _first_process_of(self._nspawn.pid)
        if not self._leader:
            return False
        return self.run("systemctl", "is-system-running", fails=True).strip() in (
            "running", "degraded",
        )  # fmt: skip

    def _said(self) -> str:
        return f"its console: {self._console.read_text(errors='replace')[-1500:]}"


def _words(root: Path, base: Path) -> list[str]:
    """Return the arguments of nspawn."""
    own = _HERE.stat().st_dev
    binds = [
        f"--bind-ro={place}"
        for place in dict.fromkeys((REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)))
        if base != _HERE or place.stat().st_dev != own or place.parts[1] in ("tmp", "run")
    ]  # what the overlay does not show, or what is hidden below what is mounted over it
    legacy = _LEGACY_GROUPS if Path("/sys/fs/cgroup/systemd").is_dir() else ()
    return [
        "--quiet", f"--directory={root}", f"--machine=outrider-{os.getpid()}", "--register=no",
        "--keep-unit", "--private-network", "--kill-signal=SIGRTMIN+3", "--console=read-only",
        "--link-journal=no", *binds, "--boot", "systemd.unit=multi-user.target",
        *legacy,
    ]  # fmt: skip


def _first_process_of(nspawn: int) -> int:
    """Return nspawn's child that is process 1 in its own namespace, or 0 if there is none."""
    listed = subprocess.run(
        ["pgrep", "-P", str(nspawn)], capture_output=True, text=True, check=False
    )
    for pid in listed.stdout.split():
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("NSpid:") and line.split()[2:] == ["1"]:
                    return int(pid)
    return 0

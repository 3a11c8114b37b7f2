"""Slurm's accounting for a test: a slurmdbd with a database without network access."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.fixtures.patience import patient
from tests.free_port import free_port
from tests.peers.presence import PEERS_DIR
from tests.peers.processes import end
from tests.peers.slurm import DEBIAN_12, slurm_root

ROOT: Final = PEERS_DIR / "slurmdbd"
"""Folder of the database of every release, and of the slurmdbd of the first."""
TABLES: Final = ROOT / "usr/share/mysql/mysql_system_tables.sql"
START_WITHIN_S: Final = patient(60.0)
CONFIG = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
CommunicationParameters=NoInAddrAny,DisableIPv6
AuthType=auth/none
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
PluginDir={plugins}
"""
DATABASE: Final = (
    # it speaks over a socket of this folder alone, and asks nobody who he is
    "--no-defaults", "--skip-grant-tables", "--skip-networking", "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0", "--user=root",
)  # fmt: skip


def slurmdbd_path(release: str = DEBIAN_12) -> Path:
    """Return the path of slurmdbd, if it was unpacked."""
    root = ROOT if release == DEBIAN_12 else slurm_root(release)
    return (root or ROOT) / "usr/sbin/slurmdbd"


def missing_reason(release: str = DEBIAN_12) -> str | None:
    """Return why there can be no accounting here, or None."""
    if not slurmdbd_path(release).exists():
        return f"{slurmdbd_path(release)} does not exist"
    if not (ROOT / "usr/sbin/mariadbd").exists():
        return f"{ROOT} holds no mariadbd"
    return None


class SlurmAccounting:
    """Slurmdbd and its database, ended at the end of a `with` block.

    Args:
        folder: a new folder, for all that they write.
        release: of the Slurm.

    Attributes:
        settings: lines of the slurm.conf of a cluster that uses it.
    """

    def __init__(self, folder: Path, release: str = DEBIAN_12) -> None:
        root = slurm_root(release)
        assert root is not None, "ask missing_reason of Slurm first"
        (folder / "data").mkdir(parents=True)
        libraries = next(ROOT.glob("usr/lib/*/libmariadb.so.3")).parent
        plugins = next(root.glob("usr/lib/*/slurm-wlm"))
        self._folder = folder
        self._slurmdbd = slurmdbd_path(release)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        config = folder / "slurmdbd.conf"
        config.touch(mode=0o600)
        places = f"{plugins}:{libraries / 'slurm-wlm'}" if release == DEBIAN_12 else str(plugins)
        config.write_text(CONFIG.format(port=self._port, folder=folder, plugins=places))
        self._environment = os.environ | {
            "LD_LIBRARY_PATH": f"{plugins}:{libraries}",  # newer programs look in their own first
            "MYSQL_UNIX_PORT": str(folder / "socket"),
            "SLURM_CONF": str(folder / "slurm.conf"),  # which is not there: its folder counts
        }
        self.settings = (
            "AccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={self._port}\n"
        )

    def __enter__(self) -> Self:
        """Start both; return when slurmdbd listens."""
        folder = self._folder
        where = (
            *DATABASE, f"--basedir={ROOT / 'usr'}", f"--lc-messages-dir={TABLES.parent}",
            f"--datadir={folder / 'data'}", f"--socket={folder / 'socket'}",
            f"--pid-file={folder / 'mariadbd.pid'}",
        )  # fmt: skip
        try:
            self._make_tables(*where)
            self._spawn(ROOT / "usr/sbin/mariadbd", *where)
            self._wait_until((folder / "socket").exists)
            self._spawn(self._slurmdbd, "-D")
            log = folder / "slurmdbd.log"
            self._wait_until(lambda: log.exists() and " started" in log.read_text())
        except BaseException:
            end(*self._processes)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end(*self._processes)

    def _make_tables(self, *where: str) -> None:
        """Create the database's own tables: slurmdbd has procedures in one."""
        made = subprocess.run(
            [ROOT / "usr/sbin/mariadbd", *where, "--bootstrap"],
            input=f"create database mysql;\nuse mysql;\n{TABLES.read_text()}",
            env=self._environment, capture_output=True, text=True, timeout=START_WITHIN_S,
            check=False,
        )  # fmt: skip
        if made.returncode != 0:
            raise RuntimeError(f"mariadbd --bootstrap: {made.stderr[-800:]}")

    def _spawn(self, program: Path, *words: str) -> None:
        with (self._folder / f"{program.name}.out").open("ab") as out:
            process = subprocess.Popen(
                [program, *words],
                env=self._environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        self._processes.append(process)

    def _wait_until(self, holds: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + START_WITHIN_S
        while not holds():
            if time.monotonic() > deadline_s or self._processes[-1].poll() is not None:
                message = [f.read_text()[-600:] for f in sorted(self._folder.glob("*.out"))]
                raise TimeoutError("Slurm's accounting did not start:\n" + "\n".join(message))
            time.sleep(0.1)

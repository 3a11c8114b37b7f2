"""Tests of a Slurm controller whose answers are cut: nothing is lost or counted wrong."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from outrider.api import events
from tests.peers.beside_slurm.watched import Watched, submit, write_script
from tests.peers.presence import require_peer
from tests.peers.slurm import RELEASES, Slurm, missing_reason

pytestmark = pytest.mark.slurm

JOBS_N: Final = 40
CUTS: Final = (0, 20, 2_000)
"""Bytes of an answer that arrive; a whole answer about the queue is longer."""


class CuttingProxy:
    """Proxy between Slurm's commands and its controller that closes connections early.

    Args:
        port: of the controller.

    Attributes:
        port: its own.
        cuts_after: bytes of each answer that it passes on; None: all.
        cuts: how many answers it has cut.
    """

    def __init__(self, port: int) -> None:
        self._controller = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts_after: int | None = None
        self.cuts = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        left = self.cuts_after
        with client, suppress(OSError):
            server = socket.create_connection(("127.0.0.1", self._controller))
            with server:
                threading.Thread(target=_copy, args=(client, server), daemon=True).start()
                while answer := server.recv(65_536):
                    client.sendall(answer if left is None else answer[:left])
                    if left is not None and len(answer) >= left:
                        self.cuts += 1
                        return
                    left = None if left is None else left - len(answer)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while asked := source.recv(65_536):
            target.sendall(asked)


@pytest.fixture(scope="module", params=RELEASES)
def slurm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """Provide a real Slurm of a release."""
    require_peer(f"Slurm {request.param}", missing_reason(request.param))
    folder = tmp_path_factory.mktemp("halves")
    slurm = Slurm(folder / "run", 2, cpus=4, memory_mib=8000, release=request.param)
    with slurm, pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.environment.items():
            patch.setenv(name, value)
        yield slurm


def test_cut_answers_change_nothing_and_lose_nothing(slurm: Slurm, tmp_path: Path) -> None:
    write_script(tmp_path)
    config = Path(slurm.environment["SLURM_CONF"]).read_text()
    [port] = [line for line in config.split("\n") if line.startswith("SlurmctldPort=")]
    with closing(CuttingProxy(int(port.partition("=")[2]))) as proxy:
        through = tmp_path / "slurm.conf"
        through.write_text(config.replace(port, f"SlurmctldPort={proxy.port}"))
        watched = Watched(slurm, config=str(through), answer_within_s=5.0, nodes_s=3600.0)
        jobs = [submit(slurm, tmp_path, "-H") for _ in range(JOBS_N)]
        watched.look()
        assert all(watched.kinds_of(job) == ["submitted", "held"] for job in jobs)
        before = len(watched.told)
        for cut in CUTS:
            proxy.cuts_after = cut
            batch = watched.watch.look()
            assert not batch.events, cut
            assert not batch.rejected, cut
            assert batch.note.startswith("the controller does not answer: "), cut
            assert batch.age_s >= 0.0
        assert proxy.cuts >= len(CUTS), "each of these looks had a cut answer"
        proxy.cuts_after = None
        slurm.run("scancel", jobs[0])
        watched.look_until("the end", lambda: watched.kinds_of(jobs[0])[-1] == "removed")
        told = [e for e in watched.told[before:] if e[1] in events.JOB_KINDS]
        assert len(told) == 1, "the others are as before"

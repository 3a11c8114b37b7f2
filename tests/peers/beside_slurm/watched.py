"""Real Slurm of three different nodes, and the adapter's watch on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from outrider.api import NamedEvent, UndoLog, WaitingReason, events
from outrider_adapters.slurm.adapter import ask_why
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.settings import SlurmSettings
from outrider_adapters.slurm.slurm_watch import SlurmWatch
from tests.peers.slurm import Slurm

NODES: Final = {1: "Feature=intel,ssd", 2: "Feature=intel", 3: "Feature=amd,ssd"}
SETTINGS: Final = """\
Licenses=matlab:2
PartitionName=express Nodes=n1,n2 MaxTime=10 State=UP
PartitionName=closed Nodes=n3 MaxTime=1:00:00 State=DOWN
"""
SCRIPT: Final = "#!/bin/sh\nsleep $1\n"


def unlike_nodes(folder: Path) -> Slurm:
    """Return three nodes of 4 CPUs and 8,000 MiB, each with other features."""
    slurm = Slurm(
        folder / "run", 3, cpus=4, memory_mib=8000, node_settings=NODES,
        settings=SETTINGS + "DefMemPerCPU=1000\n",
    )  # fmt: skip
    write_script(folder)
    return slurm


def write_script(folder: Path) -> None:
    """Write the script that `submit` submits."""
    (folder / "job.sh").write_text(SCRIPT)
    (folder / "job.sh").chmod(0o755)


class Watched:
    """Watch on a Slurm, and all its events.

    Attributes:
        told: all events so far, in the order of the batches.
        watch: as the adapter has it.
    """

    def __init__(
        self, slurm: Slurm, cursor: Any = None, undo_log: UndoLog | None = None, **settings: Any
    ) -> None:
        self.slurm = slurm
        usual: dict[str, Any] = {"config": slurm.environment["SLURM_CONF"], "nodes_s": 1.0}
        made = SlurmSettings(**(usual | settings))
        self.commands = SlurmCommands(made)
        self.watch = SlurmWatch(self.commands, made, undo_log)
        self.watch.start(cursor)
        self.told: list[NamedEvent] = []
        self.cursor: Any = cursor

    def look(self) -> list[NamedEvent]:
        """Look once and return the events."""
        batch = self.watch.look()
        assert not batch.note, batch.note
        assert not batch.rejected, batch.rejected
        self.cursor = batch.cursor
        self.told += batch.events
        return batch.events

    def look_until(self, what: str, holds: Callable[[], bool], within_s: float = 30.0) -> None:
        """Look until a condition holds. Raises `TimeoutError`."""

        def looked() -> bool:
            self.look()
            return holds()

        self.slurm.wait_until(what, looked, within_s)

    def of(self, job: str) -> list[tuple[str, float, Any]]:
        """Return kind, time and extra of the events of a job, by its id."""
        name = f"outrider:{job}"
        return [(events.KIND_NAMES[e[1]], e[0], e[3]) for e in self.told if e[2] == name]

    def kinds_of(self, job: str) -> list[str]:
        """Return the kinds of the events of a job, without edits."""
        return [kind for kind, _, _ in self.of(job) if kind != "changed"]

    def class_of(self, job: str) -> set[str]:
        """Return the last published nodes that a job may use."""
        [spec] = [extra for kind, _, extra in self.of(job) if kind == "submitted"]
        name = spec.eligible
        for kind, _, extra in self.of(job):
            if kind == "changed":
                name = extra.get("eligible", name)
        told = [e[3] for e in self.told if e[1] == events.ELIGIBLE and e[2] == name]
        return set(told[-1])

    def why(self, job: str) -> WaitingReason:
        """Query why a job waits now."""
        reason = self.ask(f"outrider:{job}")
        assert reason is not None
        return reason

    def ask(self, name: str) -> WaitingReason | None:
        """Query the waiting reason of a job of any name."""
        return ask_why(self.watch, self.commands, name)


def submit(slurm: Slurm, folder: Path, *words: str, sleep_s: float = 1.0) -> str:
    """Submit a job and return its id."""
    script = str(folder / "job.sh")
    shown = slurm.run("sbatch", "--parsable", "-o", "/dev/null", *words, script, str(sleep_s))
    return shown.strip().partition(";")[0]


def of_slurm(slurm: Slurm, job: str) -> dict[str, str]:
    """Return the attributes of a job in ``scontrol`` now."""
    shown = slurm.run("scontrol", "show", "job", "-o", job)
    pairs = (word.partition("=") for word in shown.split() if "=" in word)
    found: dict[str, str] = {}
    for name, _, value in pairs:
        found.setdefault(name, value)
    return found


def would_start_on(slurm: Slurm, folder: Path, node: str, words: list[str]) -> bool:
    """Return whether Slurm itself would start a job of these words on a node."""
    try:
        slurm.run("sbatch", "--test-only", "-w", node, *words, str(folder / "job.sh"), "1")
    except RuntimeError:
        return False
    return True

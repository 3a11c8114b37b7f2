"""Real Slurm whose priorities count age, and which limits accounts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.peers.beside_slurm.watched import write_script
from tests.peers.slurm import DEBIAN_12, Slurm
from tests.peers.slurm_accounting import SlurmAccounting

AGE_WEIGHT: Final = 1_000_000
MOST_AGE_S: Final = 86_400
OPERATOR_UID: Final = 1
"""Uid of the user daemon, which every system has."""
SETTINGS: Final = f"""\
PriorityType=priority/multifactor
PriorityWeightAge={AGE_WEIGHT}
PriorityMaxAge=1-0
PriorityWeightPartition=1000
PriorityCalcPeriod=1
AccountingStorageEnforce=limits
DefMemPerCPU=1000
"""
PEOPLE: Final = (
    "add cluster outrider", "add account physics", "add user root account=physics",
    "add user daemon account=physics adminlevel=Operator",
)  # fmt: skip


@contextmanager
def ranked_slurm(folder: Path, release: str = DEBIAN_12) -> Iterator[Slurm]:
    """Provide three nodes of 4 CPUs; jobs of root are in the account physics."""
    with SlurmAccounting(folder / "accounting", release) as accounting:
        slurm = Slurm(
            folder / "run", 3, cpus=4, memory_mib=8000,
            settings=SETTINGS, accounting=accounting.settings, release=release,
        )  # fmt: skip
        write_script(folder)
        for words in PEOPLE:
            slurm.run("sacctmgr", "-i", *words.split())
        with slurm:
            yield slurm


def priorities(slurm: Slurm, *jobs: str) -> dict[str, dict[str, int]]:
    """Return the present factors of each job's priority, not those of Slurm's last computation."""
    for job in jobs:  # even an update that changes nothing makes it anew
        slurm.run("scontrol", "update", f"JobId={job}", "Partition=batch")
    shown = slurm.run("sprio", "-h", "-o", "%i|%Y|%S|%A|%P|%N")
    rows = [line.split("|") for line in shown.split()]
    columns = ("priority", "site", "age", "partition", "nice")
    return {row[0]: dict(zip(columns, map(int, row[1:]), strict=True)) for row in rows}

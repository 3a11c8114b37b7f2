"""Real slurmctld with any number of nodes, none of which exists.

Its nodes are in the cloud: switched off until a job needs one, and never heard of then. The
controller places jobs and keeps them configuring (CF); nothing is launched.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.peers.slurm import Slurm

CPUS: Final = 8
KINDS: Final = 29
"""Number of kinds of jobs, which differ in their time limits."""
SUBMITTERS: Final = 3
ARRAYS: Final = 20
SETTINGS: Final = """\
MaxJobCount=50000
PrivateData=cloud
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=86400
ResumeTimeout=36000
ResumeRate=0
SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs
DefMemPerCPU=100
NodeName=c[1-{nodes}] NodeAddr=127.0.0.1 Port=1 CPUs={cpus} RealMemory=16000 State=CLOUD
"""
QUICK: Final = "default_queue_depth=1000,bf_interval=5,bf_max_job_test=1000,bf_continue"
"""Settings while its nodes are being filled."""
STILL: Final = "sched_interval=-1,bf_interval=10800,sched_min_interval=2000000000,defer"
"""Settings after that: it starts nothing more, and answers are not delayed by its own work."""


class CloudSlurm(Slurm):
    """Running slurmctld without nodes.

    Args:
        run_dir: as of `Slurm`.
        cloud_nodes: how many, of 8 CPUs each.
    """

    def __init__(self, run_dir: Path, cloud_nodes: int) -> None:
        settings = SETTINGS.format(nodes=cloud_nodes, cpus=CPUS)
        super().__init__(run_dir, 0, settings=settings, scheduling=QUICK)
        self.cloud_nodes = cloud_nodes

    @property
    def controller_pid(self) -> int:
        """Return the process of slurmctld."""
        return self._processes[0].pid

    def fill(self, single: int, tasks: int) -> list[str]:
        """Fill nine nodes of ten, one job each, and queue a job for all nodes before others.

        The others, of many kinds, would take longer than it waits, so they do not pass it; then the
        controller stops starting jobs altogether.

        Args:
            single: so many jobs.
            tasks: so many, in twenty arrays.

        Returns:
            the ids of what waits; of an array one for each task.
        """
        taken = self.cloud_nodes * 9 // 10
        self.submit("--exclusive", "-N1", "-t30", f"--array=1-{taken}", "-Acarol")
        self.wait_until("starts", lambda: len(self.jobs("CF")) == taken, within_s=300.0)
        self.submit("--exclusive", f"-N{self.cloud_nodes}", "-t10", "-Acarol")
        kinds = itertools.cycle(
            (f"-t{31 + kind}", f"-A{'bob' if kind % 2 else 'alice'}") for kind in range(KINDS)
        )
        wanted = [(*kind, "-n1") for kind, _ in zip(kinds, range(single), strict=False)]
        each = tasks // ARRAYS
        arrays = [
            (*kind, "-n1", f"--array=1-{each}")
            for kind, _ in zip(kinds, range(ARRAYS), strict=False)
        ]
        with ThreadPoolExecutor(SUBMITTERS) as pool:
            ids = list(pool.map(lambda words: self.submit(*words), wanted))
            of_arrays = list(pool.map(lambda words: self.submit(*words), arrays))
        ids += [f"{array}_{task}" for array in of_arrays for task in range(1, each + 1)]
        self._config.write_text(self._config.read_text().replace(QUICK, STILL))
        self.run("scontrol", "reconfigure")
        waiting = set(self.run("squeue", "-h", "-r", "-t", "PD", "-o", "%i").split())
        return [job for job in ids if job in waiting]

    def submit(self, *words: str) -> str:
        """Submit a job as an unprivileged user and return its id."""
        whose = ("--uid=nobody", "--gid=nogroup", "--export=NIL", "--chdir=/", "-o/dev/null")
        return self.run("sbatch", "--parsable", *whose, *words, "--wrap=true").strip()

    def _is_ready(self) -> bool:
        return self._answers()

    def _end_jobs(self) -> None:
        """Do nothing: the jobs run nowhere, and end with the controller."""

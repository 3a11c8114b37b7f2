"""Real Slurm for a test: one controller and a few nodes of one core each."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from tests.fixtures.patience import patient
from tests.free_port import free_port
from tests.peers.presence import PEERS_DIR
from tests.peers.processes import comes_true, end

DEBIAN_12: Final = "22.05"
DEBIAN_13: Final = "24.11"
RELEASES: Final = (DEBIAN_12, DEBIAN_13)
"""Releases of Slurm, by the version in Debian."""
CONFIG = """\
ClusterName=outrider
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
PluginDir={plugins}
# Nobody else is on this Slurm: nobody has to prove who he is, so no munged is needed.
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny,DisableIPv6
StateSaveLocation={run_dir}/state
SlurmctldPidFile={run_dir}/slurmctld.pid
SlurmdPidFile={run_dir}/slurmd-%n.pid
SlurmdSpoolDir={run_dir}/spool-%n
SlurmctldLogFile={run_dir}/slurmctld.log
SlurmdLogFile={run_dir}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters={scheduling}
# A node may claim more than this machine has.
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
KillWait=2
MinJobAge=300
"""
# A begin time that comes is noticed at the next pass: every minute, were it not said.
QUICK: Final = "batch_sched_delay=0,sched_min_interval=100000,sched_interval=2,bf_interval=2"
BASIC: Final = "PriorityType=priority/basic\n"
"""A job submitted later has a lower priority; newer releases have another default."""
NO_ACCOUNTING: Final = "AccountingStorageType=accounting_storage/none\n"
NODE = (
    "NodeName=n{n} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} "
    "CPUs={cpus} RealMemory={memory_mib} {more} State=UNKNOWN"
)
CGROUPS: Final = Path("/sys/fs/cgroup")
"""Many containers have none. A node is told to use none of it, but looks for it first."""
START_WITHIN_S: Final = patient(30.0)
COMES_WITHIN_S: Final = patient(60.0)
COMMAND_WITHIN_S: Final = 60.0


def slurm_root(release: str = DEBIAN_12) -> Path | None:
    """Return the folder below which a Slurm is installed or was unpacked, or None."""
    unpacked, system = PEERS_DIR / "slurm", Path("/")
    roots = (unpacked, system) if release == DEBIAN_12 else (PEERS_DIR / f"slurm-{release}",)
    return next((root for root in roots if (root / "usr/sbin/slurmctld-wlm").exists()), None)


def missing_reason(release: str = DEBIAN_12) -> str | None:
    """Return why no such Slurm can be started on this machine, or None if one can."""
    if os.geteuid() != 0:
        return "slurmd needs root to run jobs as their users"
    if slurm_root(release) is None:
        if release != DEBIAN_12:
            return f"{PEERS_DIR / f'slurm-{release}'} holds no slurmctld"
        return f"neither {PEERS_DIR / 'slurm'} nor this system holds slurmctld"
    if not CGROUPS.is_mount():
        return f"nothing is mounted at {CGROUPS}, and slurmd does not start without"
    return None


class Slurm:
    """Running Slurm, ended by `stop` or at the end of a `with` block.

    Args:
        run_dir: a new folder, for its configuration, state and logs.
        nodes: how many, named n1, n2, ...
        cpus, memory_mib: of each.
        node_settings: more of the definition of some nodes, by number: ``Feature=ssd``.
        settings: more lines of slurm.conf.
        accounting: its lines about the accounting.
        scheduling: its `SchedulerParameters`.
        release: which Slurm.

    Attributes:
        release: as above.
        environment: what a process needs beside its own environment to use it.
    """

    def __init__(
        self,
        run_dir: Path,
        nodes: int = 2,
        *,
        cpus: int = 1,
        memory_mib: int = 4000,
        node_settings: Mapping[int, str] = MappingProxyType({}),
        settings: str = "",
        accounting: str = NO_ACCOUNTING,
        scheduling: str = QUICK,
        release: str = DEBIAN_12,
    ) -> None:
        """Write its configuration into a new folder; start nothing yet."""
        root = slurm_root(release)
        assert root is not None, "ask missing_reason first"
        (plugins,) = root.glob("usr/lib/*/slurm-wlm")
        (run_dir / "state").mkdir(parents=True)
        if release != DEBIAN_12:  # which takes no such line
            (run_dir / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        self.run_dir = run_dir
        self.release = release
        self.nodes = tuple(f"n{n}" for n in range(1, nodes + 1))
        self._config = run_dir / "slurm.conf"
        self._programs = root / "usr/sbin"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._config.write_text(
            CONFIG.format(port=free_port(), plugins=plugins, run_dir=run_dir, scheduling=scheduling)
            + ("" if "PriorityType" in settings else BASIC)
            + settings
            + accounting
            + "".join(
                NODE.format(
                    n=n,
                    port=free_port(),
                    cpus=cpus,
                    memory_mib=memory_mib,
                    more=node_settings.get(n, ""),
                )
                + "\n"
                for n in range(1, nodes + 1)
            )
            + "PartitionName=batch Nodes=ALL Default=YES MaxTime=1:00:00 State=UP\n"
        )
        self.environment = {
            "SLURM_CONF": str(self._config),
            "LD_LIBRARY_PATH": str(plugins),  # where Slurm's programs look was fixed at their build
            "PATH": f"{root / 'usr/bin'}:{os.environ['PATH']}",
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start controller and nodes; return when every node takes jobs.

        Raises:
            RuntimeError: They did not become ready; the message holds the end of the logs.
        """
        self._spawn("slurmctld-wlm", "-D", "-i")
        for node in self.nodes:
            stepd = self._programs / "slurmstepd-wlm"
            self._spawn("slurmd-wlm", "-D", "-N", node, "-d", str(stepd))
        try:
            self.wait_until("idle nodes", self._is_ready, START_WITHIN_S)
        except TimeoutError as error:
            self.stop()
            raise RuntimeError(f"Slurm did not start: {error}") from error

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Suspend the controller within the block: it neither answers nor refuses."""
        controller = self._processes[0]
        controller.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            controller.send_signal(signal.SIGCONT)

    def kill_controller(self) -> None:
        """Kill the controller; the nodes and their jobs continue."""
        controller = self._processes[0]
        controller.kill()
        controller.wait()

    def start_controller(self) -> None:
        """Start the controller again from the state that it saved; return when it answers."""
        program = [str(self._programs / "slurmctld-wlm"), "-f", str(self._config), "-D"]
        self._processes[0] = self._process(program)
        self.wait_until("answer", self._answers, START_WITHIN_S)

    def stop(self) -> None:
        """Stop jobs and daemons, these and no others."""
        if not self._processes:
            return
        try:  # a job would outlive its slurmd
            self._end_jobs()
        finally:
            end(*self._processes)
            self._processes.clear()

    def run(self, *command: str) -> str:
        """Run one of Slurm's commands; return what it printed."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True,
            timeout=COMMAND_WITHIN_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout}")
        return done.stdout

    def jobs(self, *states: str) -> list[str]:
        """Return the ids of the jobs in these states, in squeue's spelling (R, PD, CA, CD, ...)."""
        wanted = ",".join(states) if states else "all"
        return self.run("squeue", "--noheader", "--format", "%A", "--states", wanted).split()

    def wait_until(
        self, what: str, holds: Callable[[], bool], within_s: float = COMES_WITHIN_S
    ) -> None:
        """Wait until a condition holds, looking ten times a second at most.

        Raises:
            TimeoutError: It did not come to hold in time; the message holds the end of the logs.
        """
        if not comes_true(holds, within_s, every_s=0.1):
            raise TimeoutError(f"no {what} within {within_s:g} s; {self._said()}")

    def _spawn(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), "-f", str(self._config), *words]
        self._processes.append(self._process(command))

    def _process(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.run_dir / "daemons.out").open("ab") as out:
            # what it is called matters: parts of it ask by its name whether they are in slurmctld
            name = Path(command[0]).name.removesuffix("-wlm")
            return subprocess.Popen(
                [name, *command[1:]],
                executable=command[0],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip

    def _answers(self) -> bool:
        try:
            return bool(self.run("scontrol", "ping").count("UP"))
        except RuntimeError:
            return False

    def _is_ready(self) -> bool:
        if any(process.poll() is not None for process in self._processes):
            raise TimeoutError(f"one of its daemons ended; {self._said()}")
        try:
            states = self.run("sinfo", "-h", "-N", "-p", "batch", "-o", "%t").split()
        except RuntimeError:
            return False  # the controller does not listen yet
        return states == ["idle"] * len(self.nodes)

    def _end_jobs(self) -> None:
        try:
            for job in self.jobs("R", "PD", "CF"):
                self.run("scancel", job)
            self.wait_until("end of the jobs", lambda: not self.jobs("R", "PD", "CF", "CG"), 20.0)
        except (RuntimeError, TimeoutError):
            pass  # its controller is gone, or a job will not end: the daemons end all the same

    def _said(self) -> str:
        logs = [*sorted(self.run_dir.glob("*.log")), self.run_dir / "daemons.out"]
        ends = [f"{log.name}:\n{log.read_text()[-800:]}" for log in logs if log.exists()]
        return "\n".join(ends) or "no logs"

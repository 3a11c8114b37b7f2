"""A real HTCondor pool for a test: submit jobs, move the owners, read what the pool wrote."""

import os
import re
import subprocess
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fixtures.patience import patient
from tests.peers.presence import PEERS_DIR
from tests.peers.processes import comes_true

SCRIPT = Path(__file__).with_name("htcondor_pool.sh")
CONFIG = Path(__file__).with_name("htcondor") / "pool.config"
INFORMATION_KNOB = re.compile(r"^EVENT_LOG_JOB_AD_INFORMATION_ATTRS = (.+)$", re.MULTILINE)
EVENT_HEAD = re.compile(r"^(?P<code>\d{3}) \((?P<cluster>\d+)\.(?P<proc>\d+)\.\d+\) ", re.MULTILINE)
SUBMITTED = re.compile(r"submitted to cluster (\d+)")
START_WITHIN_S = 120.0
COMES_WITHIN_S = patient(60.0)
COMMAND_WITHIN_S = 60.0
EVICTED_WITHIN_S = patient(15.0)
MOST_ATTEMPTS = 5


def job_information_attributes() -> str:
    """Return the job attributes in each 028 event of the pool's event log, as one list."""
    found = INFORMATION_KNOB.search(CONFIG.read_text())
    assert found, f"{CONFIG} sets no EVENT_LOG_JOB_AD_INFORMATION_ATTRS"
    return found[1]


def missing_reason() -> str | None:
    """Return why no pool can be started on this machine, or None when one can."""
    if os.geteuid() != 0:
        return "HTCondor needs root to run jobs as their users"
    if not (PEERS_DIR / "htcondor" / "usr" / "sbin" / "condor_master").is_file():
        return f"{PEERS_DIR / 'htcondor'} holds no HTCondor"
    return None


class HTCondorPool:
    """One running pool, ended by `stop` or at the end of a `with` block.

    Its machines are m1..mN, one slot of one CPU each unless `settings` of HTCondor say otherwise;
    the first half stand in cluster "A", the rest in "B". Its users are alice and bob. Paths that a
    job names (its user log) are below /home/work inside the pool, which is `work_dir` outside.
    """

    def __init__(self, run_dir: Path, machines: int = 4, settings: str = "") -> None:
        self.run_dir = run_dir
        self._settings = settings
        self.machines = tuple(f"m{number}" for number in range(1, machines + 1))
        self.event_log = run_dir / "log" / "EventLog"
        self.work_dir = run_dir / "work"

    @property
    def collector(self) -> str:
        """Host and port of the collector, once the pool has been started."""
        config = (self.run_dir / "config" / "20-machines.config").read_text()
        port = re.search(r"^SHARED_PORT_PORT = (\d+)", config, re.MULTILINE)
        assert port, config
        return f"127.0.0.1:{port[1]}"

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
        """Start the pool and return when all its machines take jobs.

        Raises:
            RuntimeError: It did not start; the message is what the script said.
        """
        more = self.run_dir.with_suffix(".config")
        more.write_text(self._settings)
        words = ("", str(len(self.machines)), str(more))
        self._script("start", *words, within_s=START_WITHIN_S)

    def stop(self) -> None:
        """End the pool and everything in it; what it wrote stays."""
        self._script("stop", within_s=COMMAND_WITHIN_S)

    def run(self, user: str, *command: str, text: str = "") -> str:
        """Run a command inside the pool as one of its users; return what it printed."""
        return self._script("exec", user, *command, text=text, within_s=COMMAND_WITHIN_S)

    def submit(self, text: str, user: str = "alice") -> int:
        """Submit a job description; return the number of its job cluster."""
        said = self.run(user, "condor_submit", text=text)
        found = SUBMITTED.search(said)
        if found is None:
            raise RuntimeError(f"condor_submit named no cluster: {said!r}")
        return int(found[1])

    def submit_sleepers(
        self, count: int, seconds: float, user: str = "alice", xml_log: str | None = None
    ) -> int:
        """Submit jobs that only sleep; return the number of their job cluster.

        Args:
            count: How many jobs.
            seconds: How long each sleeps, in real seconds.
            user: Whose they are.
            xml_log: Name of the user log to write in `work_dir`, in HTCondor's XML, telling the
                same attributes as the event log does; None for none.
        """
        lines = ["executable = /bin/sleep", f"arguments = {seconds:g}", "request_memory = 64"]
        if xml_log is not None:
            lines += [f"log = /home/work/{xml_log}", "log_xml = true"]
            lines += [f"job_ad_information_attrs = {job_information_attributes()}"]
        return self.submit("\n".join([*lines, f"queue {count}", ""]), user)

    def owner_returns(self, machine: str) -> None:
        """Log the owner in at a machine: its job is evicted within about two seconds."""
        self._set_owner(machine, present=True)

    def owner_leaves(self, machine: str) -> None:
        """Let the owner go: the machine takes jobs again within about two seconds."""
        self._set_owner(machine, present=False)

    def evict(self, machine: str, evictions: Callable[[], int]) -> None:
        """Let the owner return to a machine while a job runs there, and stay.

        The job may end before the owner is noticed; then the owner comes again for the next one.

        Args:
            machine: where.
            evictions: counts the runs lost so far.

        Raises:
            TimeoutError: No run was lost by it.
        """
        for _ in range(MOST_ATTEMPTS):
            self.wait_until(f"a run on {machine}", lambda: self.is_claimed(machine))
            before = evictions()
            self.owner_returns(machine)
            if comes_true(partial(_exceeds, evictions, before), EVICTED_WITHIN_S, every_s=0.2):
                return
            self.owner_leaves(machine)
        raise TimeoutError(
            f"the owner of {machine} returned {MOST_ATTEMPTS} times, and no run ended"
        )

    def is_claimed(self, machine: str) -> bool:
        """Return whether a job of any access point runs on a machine, by its slot."""
        slot = f"slot1@{machine}@host.pool.test"
        return self.run("root", "condor_status", slot, "-af", "Activity").split() == ["Busy"]

    def events(self, code: int, cluster: int | None = None) -> list[tuple[int, int]]:
        """Return (cluster, proc) of each event of one kind in the event log, in its order."""
        if not self.event_log.exists():
            return []
        heads = EVENT_HEAD.finditer(self.event_log.read_text())
        found = [
            (int(head["cluster"]), int(head["proc"])) for head in heads if int(head["code"]) == code
        ]
        return [job for job in found if cluster is None or job[0] == cluster]

    def records(self) -> list[tuple[int, int, int, int]]:
        """Return (code, cluster, proc, Unix seconds) of each record, by HTCondor's reader."""
        bindings: Any = import_module("htcondor2")
        with bindings.JobEventLog(str(self.event_log)) as log:
            return [
                (int(one.type), one.cluster, one.proc, one.timestamp)
                for one in log.events(stop_after=0)
            ]

    def wait_for_events(
        self, code: int, count: int, cluster: int | None = None, within_s: float = COMES_WITHIN_S
    ) -> list[tuple[int, int]]:
        """Wait until the event log holds that many events of one kind; return them.

        Raises:
            TimeoutError: They did not come in time; the message holds the end of the log.
        """
        self.wait_until(
            f"{count} events {code:03d}", lambda: len(self.events(code, cluster)) >= count, within_s
        )
        return self.events(code, cluster)

    def wait_until(
        self, what: str, holds: Callable[[], bool], within_s: float = COMES_WITHIN_S
    ) -> None:
        """Wait until a condition holds, looking five times a second at most.

        Raises:
            TimeoutError: It did not come to hold in time; the message holds the end of the log.
        """
        if not comes_true(holds, within_s, every_s=0.2):
            written = self.event_log.read_text() if self.event_log.exists() else "(no log)"
            raise TimeoutError(f"no {what} within {within_s:g} s; log ends:\n{written[-1500:]}")

    def machine_of(self, cluster: int, proc: int = 0) -> str:
        """Return the machine on which a job now runs; an empty string while it does not."""
        host = self.run("root", "condor_q", f"{cluster}.{proc}", "-af", "RemoteHost").strip()
        # slot1@m1@host.pool.test
        return host.split("@")[1] if "@" in host else ""

    def is_busy(self, machine: str) -> bool:
        """Return whether a job runs on a machine now."""
        hosts = self.run("root", "condor_q", "-allusers", "-af", "RemoteHost").split()
        return any(host.split("@")[1] == machine for host in hosts if "@" in host)

    def _set_owner(self, machine: str, *, present: bool) -> None:
        if machine not in self.machines:
            raise ValueError(f"machine {machine!r} is none of {', '.join(self.machines)}")
        (self.run_dir / "owner" / machine).write_text("1\n" if present else "0\n")

    def _script(self, verb: str, *words: str, within_s: float, text: str = "") -> str:
        done = subprocess.run(
            [str(SCRIPT), verb, str(self.run_dir), *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
            # HTCondor's Python bindings, once imported, point this at a configuration of their own
            env={name: v for name, v in os.environ.items() if name != "CONDOR_CONFIG"},
        )
        if done.returncode != 0:
            raise RuntimeError(f"{verb} {' '.join(words)}: {done.stderr.strip() or done.stdout}")
        return done.stdout


def _exceeds(count: Callable[[], int], before: int) -> bool:
    return count() > before

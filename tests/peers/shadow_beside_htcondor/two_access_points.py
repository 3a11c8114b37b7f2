"""A real pool of two access points, daemons next to it, and full dumps of its data."""

import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tests.peers.pool import HTCondorPool
from tests.peers.test_htcondor_adapter import daemon_beside
from tests.service.running.process import DaemonProcess

SCHEDDS: Final = ("host.pool.test", "second@host.pool.test")
SECOND: Final = """\
CLAIM_WORKLIFE = 1200
SCHEDD_B = $(SCHEDD)
SCHEDD_B_ARGS = -local-name schedd_b
DAEMON_LIST = $(DAEMON_LIST) SCHEDD_B
SCHEDD_B.SCHEDD_NAME = second
SCHEDD_B.SPOOL = /var/spool/condor/second
SCHEDD_B.HISTORY = /var/spool/condor/second/history
SCHEDD_B.SCHEDD_LOG = $(LOG)/SchedLog.second
SCHEDD_B.SCHEDD_ADDRESS_FILE = /var/spool/condor/second/.schedd_address
SCHEDD_B.SCHEDD_DAEMON_AD_FILE = /var/spool/condor/second/.schedd_classad
# its shadows do not know its local name, but have its environment
SCHEDD_B_ENVIRONMENT = "_CONDOR_EVENT_LOG=/var/log/condor/EventLog.second"
"""
LOGS: Final = dict(zip(SCHEDDS, ("EventLog", "EventLog.second"), strict=True))
MACHINES: Final = 8
SHORT: Final = 45
LONG: Final = 5
"""Jobs of each user at each access point: of one second, and of eight."""
ALL: Final = 2 * 2 * (SHORT + LONG)
TICKS: Final = re.compile(
    r"Time|Idle|Load|Recent|Heard|Sequence|Update|Monitor|DutyCycle|Disk|Memory|Uptime|Selector|"
    r"Elapsed|Lag|Hist|Self|MachineMaxVacate|Bench|Expires|Clock|Pipe|Debug|File|Socket"
)
"""Words in the names of slot attributes that change although nothing happens."""


class Dump(NamedTuple):
    """Dump of all ads of jobs and slots, and of the queues on disk."""

    jobs: dict[str, dict[str, Any]]
    slots: dict[str, dict[str, Any]]
    queues: list[bytes]


def dump(pool: HTCondorPool) -> Dump:
    """Take one dump of the pool."""
    jobs = [ad for name in SCHEDDS for ad in ads_of(pool, "condor_q", "-allusers", "-name", name)]
    slots = ads_of(pool, "condor_status")
    logs = [pool.run_dir / "spool" / folder / "job_queue.log" for folder in ("", "second")]
    return Dump(
        {ad["GlobalJobId"]: ad for ad in jobs},
        {ad["Name"]: ad for ad in slots},
        [log.read_bytes() for log in logs],
    )


def ads_of(pool: HTCondorPool, *command: str) -> list[dict[str, Any]]:
    """Return the output of a command that prints ads with all attributes."""
    ads: list[dict[str, Any]] = json.loads(pool.run("root", *command, "-json") or "[]")
    return ads


def submit(pool: HTCondorPool) -> None:
    """All jobs, on hold; the long ones are to come first."""
    text = "executable = /bin/sleep\nrequest_memory = 64\nhold = true\n"
    for schedd in SCHEDDS:
        for user in ("alice", "bob"):
            jobs = f"arguments = 8\npriority = 9\nqueue {LONG}\narguments = 1\npriority = 0\n"
            pool.run(user, "condor_submit", "-name", schedd, text=f"{text}{jobs}queue {SHORT}\n")


def beside(pool: HTCondorPool, folder: Path, name: str) -> DaemonProcess:
    """A daemon that takes what is there for news, with the event logs or without."""
    (folder / name).mkdir()
    daemon = daemon_beside(pool, folder / name, has_log=False)
    logs = ", ".join(f'"{schedd}" = "{pool.run_dir / "log" / log}"' for schedd, log in LOGS.items())
    more = 'start_at = "beginning"\n'
    more += f"event_logs = {{ {logs} }}\n" if name == "event logs" else ""
    text = daemon.config.read_text().replace("look_s = 1.0\n", f"look_s = 1.0\n{more}")
    daemon.config.write_text(f'show_users = "everybody"\n{text}')
    return daemon


def evictions(pool: HTCondorPool) -> int:
    """Return the number of 004 records in the two event logs."""
    logs = (pool.run_dir / "log" / name for name in LOGS.values())
    return sum(log.read_text().count("\n004 (") for log in logs)


def looked(daemon: DaemonProcess, known: Dump) -> None:
    """Let it explain a job of each access point, and look some more times."""
    for schedd in SCHEDDS:
        job = next(name for name in known.jobs if name.startswith(f"{schedd}#"))
        told = daemon.get(f"/api/v1/explain/{quote(job.rpartition('#')[0], safe='')}")
        assert told["batch_system"]["code"] == "15"
    seen_s = daemon.status()["now_s"]
    daemon.wait_until("more looks", lambda s: s["now_s"] > seen_s + 5.0)


def differ(before: Dump, after: Dump) -> None:
    """Nothing differs but what goes on by itself."""
    assert after.queues == before.queues, "a queue was written"
    assert after.jobs.keys() == before.jobs.keys()
    for name, ad in before.jobs.items():
        assert after.jobs[name] | {"ServerTime": 0} == ad | {"ServerTime": 0}
    assert after.slots.keys() == before.slots.keys()
    for name, ad in before.slots.items():
        now = after.slots[name]
        changed = {key for key in ad.keys() | now.keys() if ad.get(key) != now.get(key)}
        assert {key for key in changed if not TICKS.search(key)} == set(), name

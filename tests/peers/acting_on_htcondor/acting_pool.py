"""A real pool with leases installed, and a daemon that may edit all users' jobs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.peers.plain_policies import install_policies
from tests.peers.pool import HTCondorPool
from tests.service.running.process import DaemonProcess

REPOSITORY = Path(__file__).resolve().parents[3]
LEASES_CONFIG = REPOSITORY / "adapters/outrider_adapters/htcondor/outrider-leases.config"
CYCLE_S = 15
"""Minimum seconds between two negotiation cycles, in which Outrider can see a new job."""
LEASE_S = 20
_CYCLE_ENDS = "Finished Negotiation Cycle"
SETTINGS = f"""\
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
NEGOTIATOR_INTERVAL = {CYCLE_S}
NEGOTIATOR_MIN_INTERVAL = {CYCLE_S}
NEGOTIATOR_CYCLE_DELAY = {CYCLE_S}
PERIODIC_EXPR_INTERVAL = 2
"""
SLEEP = "executable = /bin/sleep\narguments = 600\nrequest_memory = 64\n"
CLIENT = """\
NO_DNS = True
DEFAULT_DOMAIN_NAME = pool.test
NETWORK_INTERFACE = 127.0.0.1
SEC_CLIENT_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS
SEC_TOKEN_DIRECTORY = {tokens}
"""
ADD_USER = """
import sys, htcondor2
collector = htcondor2.Collector(sys.argv[1])
schedd = htcondor2.Schedd(collector.locate(htcondor2.DaemonType.Schedd, "host.pool.test"))
schedd.addUserRec("outrider@pool.test")
"""
CONFIG = """\
mode = "{mode}"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 600.0
show_users = "everybody"

[adapters.htcondor]
collector = "{collector}"
event_logs = {{ "host.pool.test" = "{log}" }}
look_s = 1.0
snapshot_s = 4.0
lease_s = {lease_s}
{adapter}

[policies.{policy}]

[acting]
admission_control = {admits}
canary_users = ["bob"]
"""


def acting_pool(folder: Path, machines: int = 4) -> HTCondorPool:
    """The pool, not started yet."""
    return HTCondorPool(folder, machines, settings=SETTINGS + LEASES_CONFIG.read_text())


def client_config(pool: HTCondorPool, folder: Path, user: str) -> Path:
    """Configuration of a client outside the pool that has a user's token."""
    tokens = folder / f"tokens-{user}"
    tokens.mkdir(mode=0o700, exist_ok=True)
    (tokens / "token").write_text(
        pool.run("root", "condor_token_create", "-identity", f"{user}@pool.test")
    )
    (tokens / "token").chmod(0o600)
    config = folder / f"condor_config-{user}"
    config.write_text(CLIENT.format(tokens=tokens))
    return config


def add_outrider(pool: HTCondorPool, folder: Path) -> None:
    """Let the schedd know the user, as an administrator does: it has no account here."""
    config = client_config(pool, folder, "condor")
    subprocess.run(
        [sys.executable, "-c", ADD_USER, pool.collector],
        env={**os.environ, "CONDOR_CONFIG": str(config)}, check=True, timeout=60,
    )  # fmt: skip


def acting_daemon(
    pool: HTCondorPool, folder: Path, mode: str = "active", user: str = "outrider",
    policy: str = "by_user", admits: bool = False, adapter: str = 'start_by = "pin"',
) -> DaemonProcess:  # fmt: skip
    """A daemon in a mode that acts, as the user whose token it has.

    Args:
        pool: beside which.
        folder: for its files.
        mode: one that acts.
        user: whose token.
        policy: of `tests.peers.plain_policies`.
        admits: whether no job starts before the policy starts it.
        adapter: more lines of the adapter's table.
    """
    config = folder / "outrider.toml"
    config.write_text(
        CONFIG.format(
            mode=mode, state=folder / "state", collector=pool.collector, log=pool.event_log,
            lease_s=LEASE_S, policy=policy, admits=str(admits).lower(), adapter=adapter,
        )
    )  # fmt: skip
    environ = install_policies(folder) | {"CONDOR_CONFIG": str(client_config(pool, folder, user))}
    return DaemonProcess(config, environ)


def after_a_cycle(pool: HTCondorPool) -> None:
    """Return right after a negotiation cycle: the next one is `CYCLE_S` away."""

    log = pool.run_dir / "log" / "NegotiatorLog"
    before = log.read_text().count(_CYCLE_ENDS)
    what = "negotiation cycle"
    pool.wait_until(what, lambda: log.read_text().count(_CYCLE_ENDS) > before, 4.0 * CYCLE_S)


@contextmanager
def acting(
    pool: HTCondorPool, folder: Path, mode: str = "active", **settings: Any
) -> Iterator[DaemonProcess]:
    """A daemon that has seen the machines; `settings` as of `acting_daemon`."""
    with acting_daemon(pool, folder, mode, **settings) as daemon:
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
        yield daemon


def queue(pool: HTCondorPool, attribute: str) -> dict[int, str]:
    """An attribute of all jobs, by their job cluster."""
    said = pool.run("root", "condor_q", "-allusers", "-af", "ClusterId", attribute)
    return {int(line.split()[0]): line.split(maxsplit=1)[1] for line in said.splitlines()}


def running(pool: HTCondorPool) -> set[int]:
    """The job clusters that run."""
    return {job for job, status in queue(pool, "JobStatus").items() if status == "2"}


def leased(pool: HTCondorPool, n: int) -> None:
    """Wait until so many jobs have a lease."""

    def known() -> int:
        return sum(until != "undefined" for until in queue(pool, "OutriderUntil").values())

    pool.wait_until(f"{n} leases", lambda: known() >= n, within_s=CYCLE_S)

"""A real pool in which leases are installed, and a daemon that may edit everybody's jobs."""

import os
import subprocess
import sys
from pathlib import Path

from tests.peers.plain_policies import install_policies
from tests.peers.pool import HTCondorPool
from tests.service.running.process import DaemonProcess

REPOSITORY = Path(__file__).resolve().parents[2]
LEASES_CONFIG = REPOSITORY / "adapters/outrider_adapters/htcondor/outrider-leases.config"
CYCLE_S = 15
"""From one negotiation cycle to the next, at least: Outrider has that long to see a new job."""
LEASE_S = 20
_CYCLE_ENDS = "Finished Negotiation Cycle"
SETTINGS = f"""\
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
NEGOTIATOR_INTERVAL = {CYCLE_S}
NEGOTIATOR_MIN_INTERVAL = {CYCLE_S}
NEGOTIATOR_CYCLE_DELAY = {CYCLE_S}
"""
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
start_by = "pin"

[policies.{policy}]

[acting]
admission_control = {admits}
canary_users = ["bob"]
"""


def acting_pool(folder: Path) -> HTCondorPool:
    """The pool, not started yet."""
    return HTCondorPool(folder, settings=SETTINGS + LEASES_CONFIG.read_text())


def client_config(pool: HTCondorPool, folder: Path, user: str) -> Path:
    """The configuration of somebody outside the pool who has a user's token."""
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
    policy: str = "by_user", admits: bool = False,
) -> DaemonProcess:  # fmt: skip
    """A daemon in a mode that acts, as the user whose token it has."""
    config = folder / "outrider.toml"
    config.write_text(
        CONFIG.format(
            mode=mode, state=folder / "state", collector=pool.collector, log=pool.event_log,
            lease_s=LEASE_S, policy=policy, admits=str(admits).lower(),
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

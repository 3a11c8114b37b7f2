"""No policy chooses a machine that the pool would refuse the job, by the pool's own matching.

Machines are free and jobs wait, for the negotiator is off: so every policy decides about all of
them, and each choice can be held against HTCondor's own analysis of this job and this slot.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.peers import every_policy
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.test_htcondor_adapter import daemon_beside

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

SETTINGS: Final = """\
M2.MEMORY = 1024
M2.SLOT_TYPE_1 = cpus=1, memory=1024
M3.START = OwnerActive =!= True && TARGET.Owner =!= "alice"
M4.START = OwnerActive =!= True && TARGET.WantScratch
"""
MACHINES: Final = 6
OWNED: Final = "m5"
SLEEP: Final = "executable = /bin/sleep\narguments = 600\n"
SMALL: Final = "request_memory = 64\n"
JOBS: Final = {
    "anything": SMALL,
    "much memory": "request_memory = 500\n",
    "memory that nobody has": "request_memory = 900 GB\n",
    "a machine of group B": f'{SMALL}requirements = MachineCluster == "B"\n',
    "what m4 wants": f"{SMALL}+WantScratch = True\n",
    "not m1": f'{SMALL}requirements = regexp("m1@", Name) =!= True\n',
    "m3 alone": f'{SMALL}requirements = regexp("m3@", Name)\n',
    "the machine of an owner": f'{SMALL}requirements = regexp("{OWNED}@", Name)\n',
    "two CPUs": f"{SMALL}request_cpus = 2\n",
}
NOWHERE: Final = {"memory that nobody has", "the machine of an owner", "two CPUs"}
ABLE: Final = re.compile(r"(\d+) are able to run your job")


def test_every_start_that_any_policy_chose_is_one_that_the_pool_would_make(tmp_path: Path) -> None:
    require_peer("HTCondor pool", missing_reason())
    with HTCondorPool(tmp_path / "pool", MACHINES, SETTINGS) as pool:
        pool.owner_returns(OWNED)
        pool.run("root", "condor_off", "-negotiator")
        log = tmp_path / "pool" / "log" / "MasterLog"
        pool.wait_until("negotiator's end", lambda: "NEGOTIATOR" in log.read_text()[-500:])
        states = "condor_status", f"slot1@{OWNED}@host.pool.test", "-af", "State"
        pool.wait_until("the owner", lambda: pool.run("root", *states).strip() == "Owner")
        kinds = {
            f"host.pool.test#{pool.submit(f'{SLEEP}{text}queue 3', user)}": what
            for what, text in JOBS.items()
            for user in ("alice", "bob")
        }
        daemon = daemon_beside(pool, tmp_path, has_log=True)
        text = daemon.config.read_text().replace("[policies.bandit]\n", every_policy.tables())
        daemon.config.write_text(text)
        journal = tmp_path / "state" / "journal.sqlite"

        def deciding() -> set[str]:
            return {policy for policy, _, _ in every_policy.starts(journal)}

        def placed() -> set[str]:
            return {kinds[job.rpartition(".")[0]] for _, job, _ in every_policy.starts(journal)}

        with daemon:
            status = daemon.wait_until("jobs", lambda s: s["jobs"]["queued"] == 3 * len(kinds))
            pool.wait_until("choices of all", lambda: deciding() >= set(every_policy.names()))
            pool.wait_until("starts of every kind", lambda: placed() >= set(JOBS) - NOWHERE)
            seen_s = status["now_s"]
            daemon.wait_until("more passes", lambda s: s["now_s"] > seen_s + 15.0)
            assert daemon.stop() == 0
        chosen = {(job, machine) for _, job, machine in every_policy.starts(journal)}
        refused = [pair for pair in chosen if not is_able(pool, *pair)]
    assert refused == []
    assert {machine.partition("@")[0] for _, machine in chosen} == {"m1", "m2", "m3", "m4", "m6"}
    assert placed() == set(JOBS) - NOWHERE


def is_able(pool: HTCondorPool, job: str, machine: str) -> bool:
    """Return whether a slot is able to run a job, as ``condor_q`` analyses it."""
    slot = f"slot1@{machine}"
    short = job.rpartition("#")[2]
    said = pool.run("root", "condor_q", "-better-analyze", short, "-machine", slot)
    found = ABLE.search(said)
    assert found is not None, said
    return int(found[1]) == 1

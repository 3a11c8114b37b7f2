"""Small mock pools, and the few questions that the tests ask them."""

import io
import random
from typing import Any

from outrider_adapters.htcondor.pool_calls import AdType, ClassAd, ExprTree, JobAction
from outrider_adapters.mock_condor.ads import PoolConfig
from outrider_adapters.mock_condor.collector import Machine
from outrider_adapters.mock_condor.faults import Faults
from outrider_adapters.mock_condor.pool import MockPool

BEGIN_S = 1_800_000_000.0
JOB = {"executable": "/bin/job"}

IDLE, RUNNING, REMOVED, COMPLETED, HELD, SUSPENDED = 1, 2, 3, 4, 5, 7


def made_pool(
    machines: int | list[Machine] = 2,
    *,
    log: Any = None,
    faults: Faults | None = None,
    sleep: Any = None,
    seed: int = 1,
    **config: Any,
) -> MockPool:
    """Return a pool of plain machines m0, m1, ... with one slot each, or of these machines."""
    if isinstance(machines, int):
        machines = [
            Machine(name=f"m{number}", cluster="AB"[number % 2]) for number in range(machines)
        ]
    return MockPool(
        machines,
        now_s=BEGIN_S,
        rng=random.Random(seed),
        event_log=log if log is not None else io.StringIO(),
        config=PoolConfig(**config),
        faults=faults,
        sleep=sleep or no_sleep,
    )


def no_sleep(seconds: float) -> None:
    raise AssertionError(f"nobody should sleep here, least of all {seconds} s")


def job_ad(pool: MockPool, name: str) -> Any:
    """Return the ad of ``"cluster.proc"``, from the queue or the history."""
    cluster, proc = name.split(".")
    condition = f"ClusterId == {cluster} && ProcId == {proc}"
    schedd = pool.schedd("anybody")
    (ad,) = schedd.query(condition) or schedd.history(condition)
    return ad


def status(pool: MockPool, name: str) -> int:
    return int(job_ad(pool, name)["JobStatus"])


def host(pool: MockPool, name: str) -> str | None:
    """Return the slot where a job runs."""
    found = job_ad(pool, name).get("RemoteHost")
    return None if found is None else str(found)


def hosts(pool: MockPool) -> dict[str, str]:
    """Return where every job that runs does so."""
    return {
        f"{ad['ClusterId']}.{ad['ProcId']}": ad["RemoteHost"]
        for ad in pool.schedd("anybody").query()
        if "RemoteHost" in ad
    }


def slot_ad(pool: MockPool, name: str) -> Any:
    (ad,) = pool.collector().query(AdType.Startd, f'Name == "{name}"')
    return ad


def running_of(pool: MockPool, user: str) -> int:
    return len(pool.schedd("anybody").query(f'Owner == "{user}" && JobStatus == {RUNNING}'))


__all__ = [
    "BEGIN_S", "COMPLETED", "HELD", "IDLE", "JOB", "REMOVED", "RUNNING", "SUSPENDED",
    "AdType", "ClassAd", "ExprTree", "Faults", "JobAction", "Machine", "MockPool",
    "host", "hosts", "job_ad", "made_pool", "running_of", "slot_ad", "status",
]  # fmt: skip

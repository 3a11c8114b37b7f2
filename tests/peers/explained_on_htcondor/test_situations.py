"""Fourteen situations on a real pool, explained over HTTP and held against the pool's own commands.

They are made all at once, each with a machine of its own, so that none stands in another's way.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from tests.peers.explained_on_htcondor.pools_own_words import Made, differences
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.test_htcondor_adapter import daemon_beside

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

SETTINGS: Final = """\
MATLAB_LIMIT = 0
M1.MachineWatts = 61.5
M1.ActiveWatts = 90
M1.STARTD_ATTRS = MachineCluster, MachineWatts, ActiveWatts
M3.START = OwnerActive =!= True && TARGET.Owner =!= "alice"
"""
WATTS: Final = 'watts_attribute = "MachineWatts"\nactive_w_attribute = "ActiveWatts"\n'
SLEEP: Final = "executable = /bin/sleep\nrequest_memory = 64\n"


def on(machine: str, more: str = "", seconds: int = 600) -> str:
    """A job that may run on one machine."""
    where = f'requirements = regexp("{machine}@", Name)'
    return f"{SLEEP}arguments = {seconds}\n{where}\n{more}\nqueue\n"


NOT_THERE: Final = 'executable = /home/work/none\ntransfer_executable = false\nrequirements = regexp("m4@", Name)\nqueue\n'  # noqa: E501
SITUATIONS: Final = {
    "memory that nobody has": f"{SLEEP}arguments = 600\nrequest_memory = 900 GB\nqueue\n",
    "a condition that nobody meets": f"{SLEEP}requirements = NoSuchAttribute == 7\nqueue\n",
    "its machine is its owner's": on("m1"),
    "its machine is another user's": on("m2"),
    "START of its machine refuses it": on("m3"),
    "a concurrency limit is reached": on("m7", "concurrency_limits = matlab"),
    "submitted on hold": on("m1", "hold = true"),
    "held by its user": on("m1"),
    "its program is not there": NOT_THERE,
    "completed": on("m4", seconds=1),
    "removed while it waited": on("m1"),
    "removed while it ran": on("m5"),
    "evicted and waiting again": on("m6"),
}
"""Situations by name, submitted by alice; `running` is bob's job on m2."""

HELD: Final = {"condor_q -allusers": "ClusterId == {job} && JobStatus == 5"}
REMOVED: Final = {"condor_history": "ClusterId == {job} && JobStatus == 3"}
COMES_ABOUT: Final = {
    "its machine is its owner's": {"condor_status": 'OwnerActive && regexp("m1@", Name)'},
    "a concurrency limit is reached": {
        "condor_q -allusers": "ClusterId == {job} && LastRejMatchReason isnt undefined"
    },
    "submitted on hold": HELD,
    "held by its user": HELD,
    "its program is not there": HELD,
    "completed": {"condor_history": "ClusterId == {job} && JobStatus == 4"},
    "removed while it waited": REMOVED,
    "removed while it ran": REMOVED,
    "evicted and waiting again": {
        "condor_q -allusers": "ClusterId == {job} && JobStatus == 1 && NumShadowStarts == 1",
        "condor_status": 'OwnerActive && regexp("m6@", Name)',
    },
}
"""Situations that the pool's own commands show late; the others show immediately."""

EXPLAINED: Final = {
    "memory that nobody has": (
        "waits: none of the pool's 7 machines may run it: no machine meets TARGET.Memory >= 921600",
        r"ask for at most 256 MB of memory: 6 machines match then: condor_qedit \S+ RequestMemory",
    ),
    "a condition that nobody meets": (
        "no machine meets NoSuchAttribute == 7",
        "6 machines would match without NoSuchAttribute == 7",
    ),
    "its machine is its owner's": (
        "none of them has room for it now, 1 of them used by their owners",
        "wait for a machine to get free",
    ),
    "its machine is another user's": (
        "1 of the pool's 7 machines may run it, and none of them has room for it now",
        "wait for a machine to get free",
    ),
    "START of its machine refuses it": (
        "1 machine meets its own conditions, and its START refuses it .TARGET.Owner isnt .alice..",
        r"6 machines would match without regexp\(\"m3@\",Name\)",
    ),
    "a concurrency limit is reached": (
        "1 have room for it now, .* HTCondor says: concurrency limit matlab reached",
        "wait until jobs that count against this limit have ended",
    ),
    "submitted on hold": ("is held: ", "release it: condor_release"),
    "held by its user": ("held: via condor_hold .by user alice.", "release it: condor_release"),
    "its program is not there": ("Failed to execute", "fix what the reason names"),
    "running": ("is running on m2@host.pool.test", None),
    "completed": ("it completed at .* on m4@host.pool.test after RUNS", None),
    "removed while it waited": ("it was removed at .*, and no run of it is known", None),
    "removed while it ran": (
        "was removed at .*, the last on m5@host.pool.test .removed from the queue", None),
    "evicted and waiting again": (
        "1 of the pool's 7 machines may run it, .* 1 of them used by their owners",
        "wait for a machine to get free",
    ),
}  # fmt: skip
"""Words of the sentence, and of the first of what would change it (None: nothing is said).

RUNS: how often the schedd says that it ran: on busy cores a shadow may fail, and it runs again.
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A real pool with a job in each situation, and a daemon."""
    require_peer("HTCondor pool", missing_reason())
    folder = tmp_path_factory.mktemp("situations")
    with HTCondorPool(folder / "pool", 7, SETTINGS) as pool:
        pool.owner_returns("m1")
        pool.run("root", "condor_userprio", "-setfactor", "bob@pool.test", "1000000")
        running = pool.submit(on("m2"), "bob")
        pool.wait_for_events(1, 1, running)  # there is an event log now
        daemon = daemon_beside(pool, folder, has_log=True)
        hours, closes = open_now()
        text = daemon.config.read_text().replace("look_s = 1.0\n", f"look_s = 1.0\n{WATTS}")
        shown = 'show_users = "everybody"\ntimezone = "UTC"\n'
        daemon.config.write_text(f'{shown}{text}\n[clusters.A]\nopen = "{hours}"\n')
        with daemon:
            daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 7)
            jobs = {what: pool.submit(text) for what, text in SITUATIONS.items()}
            pool.wait_for_events(1, 1, jobs["removed while it ran"])
            pool.wait_for_events(1, 1, jobs["evicted and waiting again"])
            pool.owner_returns("m6")
            pool.run("alice", "condor_hold", f"{jobs['held by its user']}")
            for what in ("removed while it waited", "removed while it ran"):
                pool.run("alice", "condor_rm", f"{jobs[what]}")
            for what in COMES_ABOUT:
                pool.wait_until(what, partial(is_there, pool, what, jobs[what]))
            yield Made(pool, daemon, jobs | {"running": running}, closes)
            assert daemon.stop() == 0


def is_there(pool: HTCondorPool, what: str, job: int) -> bool:
    """Return whether a situation has come about, by the pool's own commands only."""
    asked = [
        (*command.split(), "-constraint", where.replace("{job}", f"{job}"), "-af", "MyType")
        for command, where in COMES_ABOUT[what].items()
    ]
    return all(pool.run("root", *words).strip() for words in asked)


def open_now() -> tuple[str, str]:
    """Opening hours from six hours ago for twelve hours, and when they end, in UTC."""
    now = dt.datetime.now(dt.UTC)
    begin, end = now - dt.timedelta(hours=6), now + dt.timedelta(hours=6)
    return f"{begin:%a} {begin:%H:%M}-{end:%H:%M}".lower(), f"{end:%d %b %H:%M}"


def agreed(made: Made, what: str) -> dict[str, Any]:
    """Return the explanation once it matches the pool; the daemon looks every second."""
    answers: list[dict[str, Any]] = []

    def agrees() -> bool:
        answers.append(made.explained(what))
        return not list(differences(made, what, answers[-1]))

    try:
        made.pool.wait_until("agreement", agrees)
    except TimeoutError:
        shown = json.dumps(answers[-1], indent=1)
        raise AssertionError([*differences(made, what, answers[-1]), shown]) from None
    return answers[-1]


@pytest.mark.parametrize("what", [*SITUATIONS, "running"])
def test_what_is_explained_is_what_the_pool_says(made: Made, what: str) -> None:
    answer = agreed(made, what)
    sentence, remedy = EXPLAINED[what]
    n = len(answer["runs"])  # as many as the schedd counts: they agree
    sentence = sentence.replace("RUNS", "one run" if n == 1 else f"{n} runs")
    assert re.search(sentence, answer["sentence"]), answer["sentence"]
    said = answer["batch_system"]
    remedies = [] if said is None else said["remedies"]
    assert bool(remedies) == (remedy is not None)
    assert remedy is None or re.match(remedy, remedies[0]), remedies


def test_the_run_that_was_lost_to_the_owner_is_in_the_jobs_history(made: Made) -> None:
    [run] = agreed(made, "evicted and waiting again")["runs"]
    assert (run["machine"], run["lost_because"]) == ("m6@host.pool.test", "owner")


def test_where_an_owner_sits_the_end_of_his_hours_can_be_waited_for(made: Made) -> None:
    waits = f"wait for the owner hours of A to end, {made.closes}: "
    assert agreed(made, "its machine is its owner's")["remedies"] == [
        f"{waits}owners use 1 machine that it may use there"
    ]
    assert agreed(made, "its machine is another user's")["remedies"] == []
    assert agreed(made, "evicted and waiting again")["remedies"] == [], "hours of B: not known"


def test_watts_that_the_slot_ads_tell_are_those_of_the_machine(made: Made) -> None:
    machines = made.daemon.get("/api/v1/machines?limit=100")["machines"]
    watts = {one["machine"]: one["active_w"] for one in machines}
    assert watts["m1@host.pool.test"] == 90.0
    assert watts["m2@host.pool.test"] is None
    measured = re.search(r'^outrider_power_watts{source="measured"} (\S+)$',
                         made.daemon.text("/metrics"), re.MULTILINE)  # fmt: skip
    assert measured is not None
    assert float(measured[1]) == 61.5

"""Compare the explanation of a job with the pool's own commands."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tests.peers.pool import HTCondorPool
from tests.service.running.process import DaemonProcess

SCHEDD: Final = "host.pool.test"


class Made(NamedTuple):
    """The pool in its situations, and a daemon beside it."""

    pool: HTCondorPool
    daemon: DaemonProcess
    jobs: dict[str, int]
    closes: str

    def explained(self, what: str) -> dict[str, Any]:
        """Return the explanation of a situation's job, with users' names shown."""
        name = quote(f"{SCHEDD}#{self.jobs[what]}.0", safe="")
        answer: dict[str, Any] = self.daemon.get(f"/api/v1/explain/{name}")
        return answer

    def ad(self, what: str, command: str) -> dict[str, Any] | None:
        """The job's ad by ``condor_q`` or ``condor_history``; None where it has none."""
        said = self.pool.run("root", command, f"{self.jobs[what]}", "-json")
        ads: list[dict[str, Any]] = json.loads(said or "[]")
        return ads[0] if ads else None


COUNTS: Final = re.compile(
    r"Of (\d+) machines,\s+(\d+) are rejected by your job's requirements\s+"
    r"(\d+) reject your job because of their own requirements\s+"
    r"(\d+) match and are already running your jobs\s+"
    r"(\d+) match but are serving other users\s+(\d+) are able to run your job"
)
STEP: Final = re.compile(r"^\[\d+\]\s+(\d+)\s+(\S.*?)\s*$", re.MULTILINE)
STATES: Final = {1: "queued", 2: "running", 5: "held"}


def differences(made: Made, what: str, answer: dict[str, Any]) -> Iterator[str]:
    """Return how the explanation differs from the pool's own commands, a sentence each."""
    ad = made.ad(what, "condor_q")
    if ad is None:
        yield from _differences_of_one_that_left(made, what, answer)
        return
    state = STATES[ad["JobStatus"]]
    if answer.get("state") != state:
        yield f"state: {answer.get('state')}, condor_q: {state}"
        return
    said = answer["batch_system"]
    yield from _differences_of_runs(answer, ad)
    if state == "running":
        if said is not None or f"on {_machine(ad['RemoteHost'])}." not in answer["sentence"]:
            yield f"it runs on {ad['RemoteHost']}"
    elif said is None:
        yield f"nothing said; condor_q: {state}"
    elif state == "held":
        reason = " ".join(ad["HoldReason"].split())[:300]
        if (said["sentence"], said["code"].split(".")[0]) != (
            f"it is held: {reason}", f"{ad['HoldReasonCode']}"
        ):  # fmt: skip
            yield f"{said['sentence']}; HoldReason: {reason}"
    else:
        yield from _differences_of_one_that_waits(made, what, said)


def _differences_of_one_that_waits(made: Made, what: str, said: dict[str, Any]) -> Iterator[str]:
    """Held against ``condor_q -better-analyze``, which counts owners' machines among refusing."""
    analysis = made.pool.run("root", "condor_q", "-better-analyze", f"{made.jobs[what]}")
    found = COUNTS.search(analysis)
    assert found is not None, analysis
    pool, rejected, refusing, _, _, able = map(int, found.groups())
    owned = _number(r"(\d+) of them used by their owners", said["sentence"])
    if said["machines"] != pool - rejected - refusing + owned:
        yield f"{said['machines']} machines, {owned} of them owners'; analysis: {found[0]}"
    if said["never"] != (said["machines"] == 0):
        yield f"never: {said['never']} with {said['machines']} machines"
    if _number(r"(\d+) have room for it now", said["sentence"]) != able:
        yield f"{said['sentence']}; {able} are able to run it"
    steps = {words(text): int(n) for n, text in STEP.findall(analysis)}
    compared = [clause for clause in said["clauses"] if words(clause["text"]) in steps]
    for clause in compared:
        if clause["machines"] != steps[words(clause["text"])]:
            yield f"{clause}; analysis: {steps}"
    if not compared:
        yield f"no clause of {said['clauses']} stands among {steps}"
    most = words(said["removes_most"] or "")
    if most in steps and steps[most] > min(steps.values()):
        yield f"{most} removes most; analysis: {steps}"
    ahead = f'JobStatus == 1 && Owner == "alice" && ClusterId < {made.jobs[what]}'
    idle = made.pool.run("root", "condor_q", "-allusers", "-constraint", ahead, "-af", "ClusterId")
    if said["machines"] and said["ahead"] != len(idle.split()):
        yield f"{said['ahead']} come before it; condor_q: {idle.split()}"


def _differences_of_one_that_left(made: Made, what: str, answer: dict[str, Any]) -> Iterator[str]:
    ad = made.ad(what, "condor_history")
    if ad is None or answer.get("left") is None:
        yield f"left: {answer.get('left')}, condor_history: {ad is not None}"
        return
    how, at, code = ("completed", "CompletionDate", 5) if ad["JobStatus"] == 4 else (
        "removed", "EnteredCurrentStatus", 9)  # fmt: skip
    left_s, cluster = answer["left"]["at_s"], made.jobs[what]
    # a record is written after what it tells, as late as the machine is busy
    recorded = [time_s for *kind, _, time_s in made.pool.records() if kind == [code, cluster]]
    # the schedd's whole second may be rounded up: a record of .999 comes before it
    before = left_s <= ad[at] - 1
    if answer["left"]["how"] != how or [int(left_s)] != recorded or before:
        yield f"left: {answer['left']}; condor_history: {how} at {ad[at]}; log: at {recorded}"
    if answer["state"] is not None or answer["batch_system"] is not None:
        yield f"{answer['state']}, though it has left"
    yield from _differences_of_runs(answer, ad)


def _differences_of_runs(answer: dict[str, Any], ad: dict[str, Any]) -> Iterator[str]:
    """Held against how often the schedd has begun it, and where it ran last."""
    ended = ad.get("NumShadowStarts", 0) - (ad["JobStatus"] == 2)
    runs = answer["runs"]
    if len(runs) != ended:
        yield f"{len(runs)} runs; the schedd counts {ended} that have ended"
    elif runs and runs[-1]["machine"] != _machine(ad["LastRemoteHost"]):
        yield f"last on {runs[-1]['machine']}; LastRemoteHost: {ad['LastRemoteHost']}"


def _machine(slot: str) -> str:
    return slot.partition("@")[2]


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return 0 if found is None else int(found[1])


def words(clause: str) -> str:
    """A clause without what the two spell differently."""
    return re.sub(r"TARGET\.|\s|[()]", "", clause).lower()

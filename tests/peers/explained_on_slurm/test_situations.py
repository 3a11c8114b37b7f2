"""Tests of 19 situations on a real Slurm: explanations over HTTP against Slurm's commands.

They are made all at once, each with a node or a partition of its own.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.beside_slurm.watched import SCRIPT, of_slurm, submit
from tests.peers.explained_on_slurm.slurms_own_words import Made, differences
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm, missing_reason
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.slurm

NODES: Final = {1: "Feature=intel,ssd", 2: "Feature=intel,gone", 3: "Feature=amd", 4: "Feature=arm"}
SETTINGS: Final = """\
DefMemPerCPU=1000
PartitionName=full Nodes=n1 MaxTime=1:00:00 State=UP
PartitionName=express Nodes=n1,n2 MaxTime=10 State=UP
PartitionName=closed Nodes=n2 MaxTime=1:00:00 State=DOWN
"""
CONFIG: Final = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 5.0
show_users = "everybody"

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0

[policies.bandit]
"""
SITUATIONS: Final[dict[str, tuple[str, ...]]] = {
    "next in line": ("-p", "full", "-n2", "-t", "30", "-C", "ssd"),
    "others are ahead": ("-p", "full", "-n2", "-t", "30"),
    "depends on another": ("-d", "afterok:{running}"),
    "depends on one that never comes": ("-d", "afterok:{cancelled while it waited}"),
    "held by its user": ("-H", "-w", "n2"),
    "held by an administrator": ("--begin=now+3600",),
    "begins later": ("--begin=2030-01-02T03:04:05",),
    "longer than its partition gives": ("-p", "express", "-t", "0:20:00"),
    "more nodes than its partition has": ("-p", "express", "-N3"),
    "more CPUs than there are": ("-n100",),
    "a feature that nobody has any more": ("-H", "-C", "gone"),
    "its node is drained": ("-w", "n3"),
    "its partition is closed": ("-p", "closed"),
    "its array runs one at a time": ("--array=1-3%1", "-w", "n4", "-t", "30"),
    "completed": ("-w", "n2"),
    "cancelled while it ran": ("-w", "n2"),
    "queued again": ("--requeue", "-w", "n2"),
}
"""Submissions by name. `running` and `cancelled while it waited` come before them."""

RUNS: Final = {
    "cancelled while it ran": ("scancel",),
    "queued again": ("scontrol", "requeue"),
}
"""Commands for jobs once they run."""

EXPLAINED: Final[dict[str, tuple[str, str | None, bool]]] = {
    "running": ("is running on n1", None, False),
    "next in line": ("what it asks for is not free: .* 0 of the 1 nodes", "wait for jobs", False),
    "others are ahead": ("1 job of higher priority, which wants 2 CPUs, waits", "wait", False),
    "depends on another": ("it waits for other jobs: afterok:", "wait for these jobs", False),
    "depends on one that never comes": ("it never starts", "remove the dependency", True),
    "held by its user": ("is held: by its user", "release it: scontrol release", False),
    "held by an administrator": ("is held: by an administrator", "ask an administrator", False),
    "begins later": (
        "its begin time is 2030-01-02 03:04:05 UTC", "let it begin now: scontrol", False),
    "longer than its partition gives": (
        "it asks for 0:20:00, express gives 0:10:00 at most", "ask for at most 0:10:00", True),
    "more nodes than its partition has": (
        "it asks for 3 nodes, express has 2 .partition node limit", "change what it asks", True),
    "more CPUs than there are": ("it never starts as submitted", "change what it asks for", True),
    "a feature that nobody has any more": (
        "features gone removes most nodes: 4 of 4", "change what it asks for", True),
    "its node is drained": (
        r"it names n3, and .* closed: n3 is drained \(.*DRAIN: broken disk\)", "wait until", False),
    "its partition is closed": ("closed starts no jobs now", "wait until it is opened", False),
    "its array runs one at a time": ("at most 1 of its tasks at a time", "let more run", False),
    "completed": ("it completed at .* on n2 after one run", None, False),
    "cancelled while it waited": ("it was removed at .*, and no run of it is known", None, False),
    "cancelled while it ran": ("it was removed at .* after one run, the last on n2", None, False),
    "queued again": ("it was queued again once, and pauses until", "wait: Slurm pauses", False),
}  # fmt: skip
"""Parts of the sentence and of the first fix (None: none), and whether it never starts."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Provide a real Slurm with a job in each situation, and a daemon."""
    require_peer("Slurm", missing_reason())
    folder = tmp_path_factory.mktemp("situations")
    (folder / "job.sh").write_text(SCRIPT)
    (folder / "job.sh").chmod(0o755)
    config = folder / "outrider.toml"
    config.write_text(CONFIG.format(state=folder / "state"))
    slurm = Slurm(
        folder / "run", 4, cpus=4, memory_mib=8000, node_settings=NODES, settings=SETTINGS
    )
    environment = slurm.environment | {"SLURM_TIME_FORMAT": "%s"}
    with slurm, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with DaemonProcess(config, environment) as daemon:
            daemon.wait_until("nodes", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
            made = Made(slurm, daemon, submitted(slurm, folder))
            for what, command in RUNS.items():  # a run that no look has seen would not be told
                slurm.wait_until(what, partial(_is_seen_running, made, what))
                slurm.run(*command, made.jobs[what])
            yield made
            assert daemon.stop() == 0


def submitted(slurm: Slurm, folder: Path) -> dict[str, str]:
    """Return the ids of the jobs; those of `RUNS` are changed once they run."""
    jobs = {"running": submit(slurm, folder, "-w", "n1", "-n4", "-t", "30", sleep_s=600)}
    slurm.wait_until("a run", lambda: of_slurm(slurm, jobs["running"])["JobState"] == "RUNNING")
    jobs["cancelled while it waited"] = submit(slurm, folder, "-H")
    slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=broken disk")
    for what, words in SITUATIONS.items():
        sleep_s = 1 if what == "completed" else 600
        jobs[what] = submit(slurm, folder, *(w.format(**jobs) for w in words), sleep_s=sleep_s)
    slurm.run("scontrol", "hold", jobs["held by an administrator"])
    for what in ("Active", "Available"):
        slurm.run("scontrol", "update", "NodeName=n2", f"{what}Features=intel")
    slurm.run("scontrol", "release", jobs["a feature that nobody has any more"])
    slurm.run("scancel", jobs["cancelled while it waited"])
    jobs["its array runs one at a time"] += "_2"
    return jobs


def _is_seen_running(made: Made, what: str) -> bool:
    return made.explained(what).get("state") == "running"


@pytest.mark.parametrize("what", list(EXPLAINED))
def test_what_is_explained_is_what_slurm_says(made: Made, what: str) -> None:
    answers: list[dict[str, Any]] = []

    def agrees() -> bool:
        answers.append(made.explained(what))
        return not list(differences(made, what, answers[-1]))

    try:
        made.slurm.wait_until("agreement", agrees)
    except TimeoutError:
        shown = json.dumps(answers[-1], indent=1)
        raise AssertionError([*differences(made, what, answers[-1]), shown]) from None
    answer = answers[-1]
    sentence, remedy, never = EXPLAINED[what]
    assert re.search(sentence, answer["sentence"]), answer["sentence"]
    message = answer["batch_system"]
    remedies = [] if message is None else message["remedies"]
    assert bool(remedies) == (remedy is not None)
    assert remedy is None or remedies[0].startswith(remedy), remedies
    assert never == (message is not None and message["never"])


def test_a_job_that_was_queued_again_tells_the_run_that_was_lost(made: Made) -> None:
    [run] = made.explained("queued again")["runs"]
    assert (run["machine"], run["lost_because"]) == ("n2", "unknown")


def test_an_arrays_id_alone_tells_how_many_of_its_tasks_are_in_which_state(made: Made) -> None:
    array = made.jobs["its array runs one at a time"]
    summary = made.daemon.get(f"/api/v1/explain/{array.partition('_')[0]}")
    assert summary["total"] == 3
    assert summary["states"] == {"held": 2, "running": 1}

"""Test of expected starts on a real Slurm, compared with actual starts and with Slurm's plan.

Jobs of seconds show that the mechanism is right. How far the intervals hold is shown on logs of
real sites (docs/forecast.md): here every hand-over of a node takes a second, and a job three.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from outrider.twin.observed import observe
from tests.peers.beside_slurm.watched import of_slurm, submit
from tests.peers.expected_starts import Answer, answers
from tests.peers.slurm import Slurm
from tests.service.running.process import DaemonProcess

# alone: at the lowest priority beside busy cores a look takes a minute, and asks of another moment
pytestmark = [pytest.mark.slurm, pytest.mark.alone]

CONFIG: Final = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 5.0

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0

[policies.fifo]

[twin]
nice = 0
starts_every_s = 1.0
"""
KINDS: Final = (
    (("-N1", "-n4", "-t1"), 1.5, 3.5),
    (("-N2", "-n8", "-t2"), 3.0, 5.0),
)
"""Requests of jobs (whole nodes), and their minimum and maximum seconds of sleep."""
FIRST, NEXT, LATER = (6, 4), (4, 1), (8, 6)
"""Jobs of each kind from whose run times is learned, and about which is asked then.

With the second lot the loops are compiled, should that be needed: the last is not to wait for it.
"""
STARTS_WITHIN_S: Final = 6.0
"""Seconds within which a job begins that starts in Slurm's next pass, every two seconds."""
PLAN_IS_OF_S: Final = 30.0
"""Maximum seconds between plan and question; the product allows a minute."""
HOUR_S: Final = 3_600.0
QUANTILES: Final = ("low_s", "median_s", "high_s")

Polled = list[tuple[float, dict[str, float]]]


def submit_jobs(slurm: Slurm, folder: Path, counts: tuple[int, int], seed: int) -> list[str]:
    """Return the ids of new jobs of both kinds, mixed, each of another length."""
    rng = random.Random(seed)
    kinds = [kind for kind, n in zip(KINDS, counts, strict=True) for _ in range(n)]
    rng.shuffle(kinds)
    return [
        submit(slurm, folder, *words, sleep_s=round(rng.uniform(least, most), 1))
        for words, least, most in kinds
    ]


@contextmanager
def slurms_plans(slurm: Slurm) -> Iterator[Polled]:
    """Yield Slurm's expected starts of jobs, polled continuously, as Unix seconds."""
    polled: Polled = []
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.3):
            at_s, rows = time.time(), slurm.run("squeue", "--start", "-h", "-o", "%i|%S").split()
            reported = (row.split("|") for row in rows)
            plan = {f"outrider:{job}": float(start) for job, start in reported if start != "N/A"}
            polled.append((at_s, plan))

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield polled
    finally:
        over.set()
        thread.join()


def questions(reported: list[Answer]) -> list[tuple[str, Answer]]:
    """Return the counted answers: a job's first, and those at full hours, without starts now."""
    seen: set[str] = set()
    asked: list[tuple[str, Answer]] = []
    hour = reported[0]["asked_s"] // HOUR_S
    for answer in reported:
        full_hour, hour = answer["asked_s"] // HOUR_S > hour, answer["asked_s"] // HOUR_S
        for job, message in answer["jobs"].items():
            counts = message is not None and message["high_s"] > answer["asked_s"]
            asked += [(job, answer)] if counts and (job not in seen or full_hour) else []
            seen.add(job)
    return asked


def loss(start_s: np.ndarray, quantiles_s: np.ndarray) -> float:
    """Return the mean pinball loss of quantiles .1, .5 and .9, seconds; an independent formula."""
    over = start_s[:, None] - quantiles_s
    level = np.array([0.1, 0.5, 0.9])
    return float(np.where(over > 0, level * over, (level - 1.0) * over).mean())


def test_starts_are_scored_beside_slurms_own_plan_on_the_same_questions(
    slurm: Slurm, folder: Path, tmp_path: Path
) -> None:
    config, state = tmp_path / "outrider.toml", tmp_path / "state"
    config.write_text(CONFIG.format(state=state))
    reported: list[Answer] = []
    held = submit(slurm, folder, "-H", sleep_s=1)
    jobs = submit_jobs(slurm, folder, FIRST, seed=1)  # which the daemon finds there
    lots = [NEXT, LATER]
    with DaemonProcess(config) as daemon, slurms_plans(slurm) as polled:
        for answer in answers(state / "starts.json"):
            reported.append(answer)
            if answer["jobs"] or set(slurm.jobs("PD", "R", "CG")) != {held}:
                continue
            if not lots:
                break
            jobs += submit_jobs(slurm, folder, lots.pop(0), seed=len(jobs))
        assert daemon.stop() == 0
    starts_s = {f"outrider:{job}": float(of_slurm(slurm, job)["StartTime"]) for job in jobs}

    machines = observe(state / "journal.sqlite").record.machines.values()
    assert {one.name: one.spec.cpus for one in machines} == dict.fromkeys(slurm.nodes, 4)
    assert reported[-1]["discipline"] == "easy"
    assert not any(f"outrider:{held}" in answer["jobs"] for answer in reported), (
        "held: nothing is said"
    )
    expect_right_starts_now(reported, starts_s)
    expect_slurms_plan(reported, polled)
    expect_scores(reported, starts_s)


def expect_right_starts_now(reported: list[Answer], starts_s: dict[str, float]) -> None:
    """Check that jobs expected to start immediately do so, but for Slurm's own passes."""
    late_s = [
        starts_s[job] - answer["asked_s"]
        for answer in reported
        for job, message in answer["jobs"].items()
        if message is not None and message["high_s"] == answer["asked_s"]
    ]
    assert late_s, "nothing was expected at once"
    assert np.mean(np.array(late_s) <= STARTS_WITHIN_S) >= 0.8, late_s


def expect_slurms_plan(reported: list[Answer], polled: Polled) -> None:
    """Check that the plan stored with each answer is squeue's of about that moment."""
    seen = [
        any(
            plan.get(job) == planned_s
            for at_s, plan in polled
            if abs(at_s - answer["asked_s"]) <= PLAN_IS_OF_S
        )
        for answer in reported
        for job, planned_s in answer["planned"].items()
    ]
    assert len(seen) >= 10
    assert np.mean(seen) >= 0.7, "a plan stands for two seconds; some fell between two polls"


def expect_scores(reported: list[Answer], starts_s: dict[str, float]) -> None:
    """Check that the scores are those of the answers, each start once."""
    asked, scores = questions(reported), reported[-1]["scores"]
    assert len({job for job, _ in asked}) >= 10
    assert scores["submission"]["n"] + scores["hourly"]["n"] == len(asked), (
        [(job, starts_s[job], answer["asked_s"]) for job, answer in asked],
        [(answer["asked_s"], sorted(answer["jobs"])) for answer in reported],
    )
    both = [(job, answer) for job, answer in asked if job in answer["planned"]]
    assert len(both) >= 5, "how many Slurm has planned by then is its own matter"
    start_s = np.array([starts_s[job] for job, _ in both])
    ours = np.array([[answer["jobs"][job][q] for q in QUANTILES] for job, answer in both])
    plan = np.array([[answer["planned"][job]] * 3 for job, answer in both])
    held = np.mean((ours[:, 0] <= start_s) & (start_s <= ours[:, 2]))
    low_s, high_s = np.quantile(start_s - plan[:, 0], [0.1, 0.9])
    assert scores["beside_batch_system"] == pytest.approx(
        {
            "n": len(both), "coverage_ratio": held, "pinball_s": loss(start_s, ours),
            "width_s": np.mean(ours[:, 2] - ours[:, 0]),
        }, abs=1e-3,
    )  # fmt: skip
    assert scores["batch_system"] == {
        "n": len(both), "coverage_ratio": None,
        "pinball_s": pytest.approx(loss(start_s, plan), abs=1e-3),
        "width_s": pytest.approx(high_s - low_s, abs=1e-3),
    }  # fmt: skip
    assert scores["beside_batch_system"]["pinball_s"] < scores["batch_system"]["pinball_s"]
    assert scores["beside_batch_system"]["width_s"] <= 0.6 * scores["batch_system"]["width_s"]

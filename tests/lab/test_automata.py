"""`outrider reproduce automata`: its experiments, rows, verdicts, page and command."""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from outrider.api import Job, JobSpec, MachineSpec
from outrider.engine.state.site import Site
from outrider.model.localtime import ZoneTime
from outrider.plugins.finding import make_policy
from outrider_lab.commands.reproductions.automata import command
from outrider_lab.papers.automata.claims import sum_as_printed
from outrider_lab.papers.automata.grid import (
    BURSTY,
    COME_AND_GO,
    DRIFT,
    FULL,
    GRID,
    LAJS,
    POLLERS,
    QUICK,
    RANDOM,
    ROUND_ROBIN,
    STATIONARY,
    STEADY,
    USERS,
    Case,
    Figures,
    cases,
)
from outrider_lab.papers.automata.nodes import LOAD_RATIO, MEAN_RUN_S, SeveralSchedulers, node_grid
from outrider_lab.papers.automata.page import PAGE
from outrider_lab.papers.automata.polling import USERS as USERS_N
from outrider_lab.papers.automata.polling import play_polls
from outrider_lab.papers.automata.reproduction import Reproduction, spec_of
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict
from outrider_lab.running.run_all import run_study, specs_of
from outrider_lab.running.run_spec import RunSpec

TINY = QUICK._replace(jobs=60, steps=100, polls=80, nodes=5)
CLAIM_FIELDS = {"claim", "where", "paper", "measured", "interval", "verdict", "why"}


def polls_of(scheme: str, pattern: str, poll: str, polls: int = 2000) -> RunSpec:
    (treatment,) = [each for each in POLLERS if each.scheme == scheme]
    return spec_of(Case(USERS, pattern, poll, treatment), FULL._replace(polls=polls), 1)


def summed_up(seeds: range, measured: dict[Case, dict[int, Figures]]) -> dict[str, Any]:
    return Reproduction(FULL, seeds).sum_up(measured)


def case_of(scheme: str) -> Case:
    """The one on the grid."""
    (case,) = [each for each in cases(FULL) if each.key == (GRID, "", "", scheme)]
    return case


# -- what is run --------------------------------------------------------------------------------


def test_the_grid_has_the_load_it_says_and_is_the_same_for_a_seed() -> None:
    grid = node_grid(3, 20, 4000)
    capacity = sum(spec.speed for spec in grid.machines)
    assert grid.run_s.sum() / grid.submit_s[-1] / capacity == pytest.approx(LOAD_RATIO, rel=0.06)
    assert grid.run_s.mean() == pytest.approx(MEAN_RUN_S, rel=0.05)
    again = node_grid(3, 20, 4000, permuted=True)
    assert np.array_equal(grid.submit_s, again.submit_s)
    assert np.array_equal(grid.run_s, again.run_s)
    assert again.machines == grid.machines
    swapped = sorted(change.speed for change in again.speed_changes)
    assert swapped == sorted(spec.speed for spec in grid.machines)
    assert {change.time_s for change in again.speed_changes} == {float(grid.submit_s[2000])}


def test_every_case_of_a_seed_is_planned_once() -> None:
    study = Reproduction(FULL, [1, 2])
    specs = specs_of(study)
    assert len({spec.key for spec in specs}) == len({str(spec) for spec in specs}) == len(specs)
    assert {case.experiment for case, _ in study.points()} == {STATIONARY, GRID, DRIFT, USERS}


def test_in_turns_nobody_waits_longer_than_a_round() -> None:
    found = play_polls(polls_of(ROUND_ROBIN, STEADY, "backlog"))
    assert found["starvation"] <= USERS_N
    assert found["wait"] == pytest.approx(USERS_N / 2, abs=2.0)


def test_users_who_come_and_go_are_all_served() -> None:
    for scheme in (ROUND_ROBIN, "L_R-P"):
        found = play_polls(polls_of(scheme, COME_AND_GO, "backlog"))
        assert found["wait"] < 40.0, scheme


def test_the_automaton_beats_turns_where_a_poll_takes_one_job_and_not_where_it_takes_all() -> None:
    wait: dict[tuple[str, str], float] = {
        (scheme, poll): play_polls(polls_of(scheme, BURSTY, poll, 5000))["wait"]
        for scheme in (ROUND_ROBIN, "L_R-P")
        for poll in ("one", "backlog")
    }
    assert wait["L_R-P", "one"] < wait[ROUND_ROBIN, "one"]
    assert wait["L_R-P", "backlog"] > wait[ROUND_ROBIN, "backlog"]


def test_several_schedulers_see_one_queue_and_learn_each_from_its_own_jobs() -> None:
    made = [make_policy("automata", {}, seed, "here", preset="lajs") for seed in (1, 2)]
    site = Site(ZoneTime("UTC"), [])
    for machine in range(3):
        site.join(machine, MachineSpec(cluster="grid", cpus=1000))
        site.open_machine(machine)
    both = SeveralSchedulers(made)
    both.choose(Job(0, JobSpec(user="ann"), 0.0), None, site, False)
    anns, bobs = (policy.scores(1, site) for policy in made)
    assert len(set(anns.values())) > 1
    assert list(bobs.values()) == pytest.approx([1 / 3] * 3)
    counted = [policy.save(site)["nodes"]["jobs"] for policy in made]
    assert counted[0] == counted[1]
    assert sum(counted[0]) == 1.0


def test_equation_41_as_printed_loses_the_probabilities() -> None:
    assert sum_as_printed(users=4, polls=0) == 1.0
    sums = [sum_as_printed(users=4, polls=n) for n in (1, 10, 100)]
    assert sums == sorted(sums, reverse=True)
    assert sums[1] < 0.5


# -- rows and verdicts --------------------------------------------------------------------------


def made_up(good: bool, seeds: range) -> dict[Case, dict[int, Figures]]:
    """A world in which learners are better by half than random and turns, or worse."""
    found: dict[Case, dict[int, Figures]] = defaultdict(dict)
    for case, seed in Reproduction(FULL, seeds).points():
        learns = case.treatment.policy == "automata"
        size = (0.5 if learns == good else 1.0) * (1 + seed / 1000)
        names = (
            "flowtime", "flowtime_before", "flowtime_after", "makespan_ratio", "load_cov", "queue",
            "wait", "wait_p95", "starvation", "empty_ratio", "heavy_wait_ratio",
        )  # fmt: skip
        found[case][seed] = dict.fromkeys(names, size) | {
            "p_best": 0.48, "locked_ratio": 0.1, "capacity_correlation": 0.99,
            "within_mean_ratio": 0.5,
        }  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("good", "verdict"), [(True, Verdict.REPRODUCED), (False, Verdict.OUTSIDE)]
)
def test_verdicts_follow_what_was_measured(good: bool, verdict: str) -> None:
    seeds = range(1, 6)
    claims = {c["claim"]: c for c in summed_up(seeds, made_up(good, seeds))["claims"]}
    beside = "LAJS improves flowtime: beside random"
    assert claims[beside]["verdict"] == verdict
    assert claims[beside]["measured"] == pytest.approx(0.5 if good else 2.0)
    printed = claims["equation 4.1, as printed, updates a probability vector: it sums to 1"]
    assert printed["verdict"] == Verdict.OUTSIDE
    short = claims["queue length is kept below the dynamic average length"]
    assert (short["verdict"], short["measured"]) == (Verdict.OUTSIDE, 0.5)
    unpublished = claims["two-way outperforms FPSO and GJS"]
    assert unpublished["verdict"] == NOT_COMPARABLE
    assert "prints no figure" in unpublished["why"]


def test_figures_are_means_over_the_seeds_with_error_and_worst() -> None:
    measured = made_up(True, range(1, 4))
    del measured[case_of(RANDOM)][2]
    rows = summed_up(range(1, 4), measured)["rows"]
    lajs = next(row for row in rows if (row["experiment"], row["scheme"]) == (GRID, LAJS))
    assert lajs["flowtime"] == {
        "mean": pytest.approx(0.501), "se": pytest.approx(0.0005 / 3**0.5), "worst": 0.5015,
    }  # fmt: skip
    assert lajs["capacity_correlation"]["worst"] == 0.99
    assert (lajs["policy"], lajs["preset"], lajs["runs"]) == ("automata", "lajs", 3)
    assert lajs["settings"]["reward_step"] == 0.05
    random = next(row for row in rows if (row["experiment"], row["scheme"]) == (GRID, RANDOM))
    assert random["runs"] == 2


# -- the whole, small ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny() -> dict[str, Any]:
    """The result of a study that is too small for verdicts."""
    return run_study(Reproduction(TINY, range(1, 3)), 1)


def test_a_run_too_small_measures_everything_and_decides_nothing(tiny: dict[str, Any]) -> None:
    assert tiny["failed"] == []
    assert {row["experiment"] for row in tiny["rows"]} == {STATIONARY, GRID, DRIFT, USERS}
    assert all(row["scheme"] and row["runs"] == 2 for row in tiny["rows"])
    assert all(set(claim) >= CLAIM_FIELDS for claim in tiny["claims"])
    assert {claim["verdict"] for claim in tiny["claims"]} == {
        NOT_COMPARABLE,
        Verdict.TOO_SMALL,
    }
    assert sum(claim["measured"] is not None for claim in tiny["claims"]) > 20


def test_the_page_draws_every_experiment_and_can_be_made_from_the_json(
    tiny: dict[str, Any],
) -> None:
    text = PAGE.html(msgspec.json.decode(msgspec.json.encode(tiny)))
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(charts) == text.count("<figure>") == 10
    for each in charts:
        ET.fromstring(each)
    assert "This is a quick run" in text
    for claim in tiny["claims"]:
        assert claim["where"] in text


def test_the_command_writes_page_and_json_and_prints_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    ran = CliRunner().invoke(
        command,
        ["--quick", "--seeds", "4-4", "--workers", "1", "--json", "--report", str(folder)],
        standalone_mode=False,
    )
    assert ran.exception is None, ran.output
    assert ran.return_value == 0, ran.stderr
    printed = json.loads(ran.stdout)
    assert printed["paper"] == "automata"
    assert printed == json.loads((folder / "result.json").read_text())
    rows = list(csv.DictReader((folder / "rows.csv").read_text().splitlines()))
    assert [row["policy"] for row in rows] == [row["policy"] for row in printed["rows"]]
    assert "</html>" in (folder / "index.html").read_text(encoding="utf-8")


def test_claims_about_a_run_that_failed_are_not_judged_and_the_others_stand() -> None:
    measured = made_up(True, range(1, 3))
    del measured[case_of(LAJS)]
    found = summed_up(range(1, 3), measured)
    claims = {claim["claim"]: claim for claim in found["claims"]}
    lost = claims["LAJS improves flowtime: beside random"]
    assert (lost["verdict"], lost["measured"]) == (Verdict.TOO_SMALL, None)
    assert (
        claims["several schedulers may share the nodes (many-to-many)"]["verdict"]
        == Verdict.REPRODUCED
    )

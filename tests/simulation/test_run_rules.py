"""Waking, data transfer, suspension and checkpoints, against a model that scans the trace."""

import dataclasses
import itertools
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.formats.campus.campus import Campus, RunRules
from outrider.formats.campus.files import read_campus, write_campus
from outrider.model.errors import TraceError
from outrider.model.events import OWNER_CAME, OWNER_WENT, REBOOTED
from outrider.simulation.campus_site import DetailedSite, simulated_site
from outrider.testing.hand_campus import DAY_S, HOUR_S, Rules, Session, Work, make_campus
from tests.fixtures import made_campuses as made
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play
from tests.fixtures.truth import Truth, long_runs_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(60), derandomize=True)
rules = st.builds(
    RunRules,
    wake_s=st.sampled_from([0.0, 30.0, 600.0]),
    wake_j=st.sampled_from([0.0, 500.0]),
    transfer_s=st.sampled_from([0.0, 60.0, 600.0]),
    suspend_s=st.sampled_from([0.0, 600.0, 3600.0, inf]),
    checkpoint_every_s=st.sampled_from([inf, 600.0, 3600.0]),
)


@st.composite
def detailed_campuses(draw: st.DrawFn) -> Campus:
    """Any tiny campus with any rules for runs."""
    return dataclasses.replace(draw(campuses()), run_rules=draw(rules))


def play(campus: Campus, **given_rules: float) -> Play:
    """The campus under random matching and these rules."""
    told = dataclasses.replace(campus, run_rules=RunRules(**given_rules)) if given_rules else campus
    return Play(told, [MAKERS["random_match"]()])


def turns(played: Play) -> list[tuple[float, list[tuple[float, str]]]]:
    """Start and turns of each run."""
    return [(run.start_s, run.turns) for run in long_runs_of(played.told)]


# -- one thing at a time ------------------------------------------------------------------------

ALONE = make_campus(
    [0], [Work(4 * HOUR_S, HOUR_S)], rules=Rules(sleep_open_s=900.0), end_s=10 * HOUR_S
)


def test_a_job_waits_until_its_machine_is_awake_and_pays_for_waking() -> None:
    played = play(ALONE, wake_s=30.0, wake_j=7200.0)
    assert turns(played) == [(4 * HOUR_S, [(5 * HOUR_S + 30.0, "completed")])]
    assert played.report["goodput_s"] == HOUR_S + 30.0
    assert played.report["energy_wh"]["goodput"] == pytest.approx(100 * (1 + 30 / 3600) + 2.0)
    assert played.report["overhead_s"]["all"]["mean"] == pytest.approx(30.0)


def test_a_machine_that_is_awake_need_not_be_woken() -> None:
    jobs = [Work(0.0, HOUR_S), Work(HOUR_S + 899.0, HOUR_S), Work(3 * HOUR_S, HOUR_S)]
    campus = make_campus([0], jobs, rules=Rules(sleep_open_s=900.0), end_s=10 * HOUR_S)
    ends = [run[-1][0] - start for start, run in turns(play(campus, wake_s=30.0))]
    assert ends == [HOUR_S, HOUR_S, HOUR_S + 30.0]


def test_a_job_copies_its_data_at_every_start() -> None:
    campus = make_campus(
        [0], [Work(0.0, HOUR_S)], [Session(0, 1800.0, 3600.0)], end_s=10 * HOUR_S
    )  # fmt: skip
    played = play(campus, transfer_s=120.0)
    assert turns(played) == [
        (0.0, [(1800.0, "owner")]),
        (3600.0, [(2 * HOUR_S + 120.0, "completed")]),
    ]
    assert played.report["badput_s"] == 1800.0


VISITED = make_campus(
    [0], [Work(0.0, HOUR_S)], [Session(0, 1800.0, 2100.0)], Rules(idle_open_s=900.0),
    end_s=10 * HOUR_S,
)  # fmt: skip


def test_a_short_visit_suspends_a_job_and_nothing_is_lost() -> None:
    played = play(VISITED, suspend_s=300.0)
    assert turns(played) == [
        (0.0, [(1800.0, "suspended"), (2100.0, "resumed"), (HOUR_S + 300.0, "completed")])
    ]
    report = played.report
    assert (report["goodput_s"], report["badput_s"], report["starts"]) == (HOUR_S, 0.0, 1)
    assert report["overhead_s"]["all"]["mean"] == 300.0
    assert sum(report["evictions"].values()) == 0


def test_an_owner_who_stays_too_long_evicts_the_suspended_job_when_the_time_is_up() -> None:
    played = play(VISITED, suspend_s=299.0)
    assert turns(played)[0] == (0.0, [(1800.0, "suspended"), (2099.0, "owner")])
    assert turns(played)[1][0] == 2100.0 + 900.0
    assert played.report["badput_s"] == 1800.0
    assert played.report["evictions"]["owner"] == 1


def test_a_visit_of_no_length_suspends_for_no_time() -> None:
    campus = make_campus([0], [Work(0.0, HOUR_S)], [Session(0, 60.0, 60.0)], end_s=2 * HOUR_S)
    assert turns(play(campus, suspend_s=60.0)) == [
        (0.0, [(60.0, "suspended"), (60.0, "resumed"), (HOUR_S, "completed")])
    ]


def test_a_reboot_at_the_second_of_the_log_out_evicts_the_suspended_job() -> None:
    night_s = 3 * HOUR_S
    campus = make_campus(
        [0], [Work(0.0, 8 * HOUR_S)], [Session(0, night_s - 60, night_s)], Rules(reboot_s=night_s),
        end_s=4 * HOUR_S,
    )  # fmt: skip
    played = play(campus, suspend_s=inf)
    assert turns(played)[0] == (0.0, [(night_s - 60, "suspended"), (night_s, "reboot")])


def test_a_job_that_is_killed_while_suspended_is_gone() -> None:
    campus = make_campus(
        [0], [Work(0.0, None, 200.0)], [Session(0, 100.0, 400.0)], end_s=HOUR_S
    )  # fmt: skip
    played = play(campus, suspend_s=inf)
    assert turns(played) == [(0.0, [(100.0, "suspended"), (200.0, "removed")])]
    assert played.report["badput_s"] == 100.0


INTERRUPTED = make_campus(
    [0], [Work(0.0, 2 * HOUR_S)], [Session(0, 5000.0, 6000.0)], end_s=10 * HOUR_S
)


def test_an_evicted_job_goes_on_from_its_last_checkpoint() -> None:
    played = play(INTERRUPTED, checkpoint_every_s=600.0)
    assert turns(played) == [
        (0.0, [(5000.0, "owner")]),
        (6000.0, [(6000.0 + 7200.0 - 4800.0, "completed")]),
    ]
    report = played.report
    assert (report["goodput_s"], report["badput_s"]) == (7200.0, 200.0)
    assert report["energy_wh"]["badput"] == pytest.approx(100 * 200 / 3600)
    assert report["energy_wh"]["goodput"] == pytest.approx(200.0)
    assert report["overhead_s"]["all"]["mean"] == 1000.0 + 200.0
    assert report["evictions"]["owner"] == 1


def test_a_run_that_saves_nothing_leaves_what_was_saved_before() -> None:
    """Also where seconds are no whole numbers: sums of tenths are a little more or less."""
    visits, at = [], 0.0
    runs_s = [0.05 if n % 2 else 0.37 + n for n in range(30)]
    for run_s in runs_s:
        visits.append(Session(0, at + run_s, at + run_s + 1.0))
        at += run_s + 1.0
    report = play(make_campus([0], [Work(0.0, HOUR_S)], visits), checkpoint_every_s=0.1).report
    saved_s = report["energy_wh"]["open"] * 36.0
    assert report["badput_s"] + saved_s == pytest.approx(sum(runs_s))
    assert report["badput_s"] < len(runs_s) * 0.1


def test_setting_up_is_no_work_that_a_checkpoint_could_save() -> None:
    played = play(INTERRUPTED, checkpoint_every_s=600.0, transfer_s=300.0)
    assert turns(played)[1] == (6000.0, [(6000.0 + 300.0 + 7200.0 - 4200.0, "completed")])
    assert played.report["badput_s"] == 800.0


def test_what_a_job_had_saved_is_thrown_away_when_it_is_killed() -> None:
    for kill_s in (5500.0, 9000.0):  # while it waits, and while it runs again
        campus = make_campus(
            [0], [Work(0.0, None, kill_s)], [Session(0, 5000.0, 6000.0)], end_s=3 * HOUR_S
        )  # fmt: skip
        report = play(campus, checkpoint_every_s=600.0).report
        worked_s = 5000.0 + max(0.0, kill_s - 6000.0)
        assert (report["goodput_s"], report["badput_s"]) == (0.0, worked_s)
        assert report["energy_wh"]["badput"] == pytest.approx(100 * worked_s / 3600)
        assert report["energy_wh"]["open"] == 0.0


def test_what_a_job_has_saved_is_open_until_the_job_is_done() -> None:
    campus = make_campus(
        [0], [Work(0.0, 9 * HOUR_S)], [Session(0, 5000.0, 6000.0)], end_s=2 * HOUR_S
    )  # fmt: skip
    report = play(campus, checkpoint_every_s=600.0).report
    assert report["badput_s"] == 200.0
    assert report["energy_wh"]["open"] == pytest.approx(100 * (4800 + 1200) / 3600)


# -- any campus, any rules ----------------------------------------------------------------------


@thorough
@given(campus=detailed_campuses())
def test_every_campus_under_any_rules_is_as_they_have_it(campus: Campus) -> None:
    """One play of each campus is judged by every rule."""
    played = play(campus)
    runs_turn_exactly_as_a_model_that_scans_the_trace_foresees(campus, played)
    energy_by_purpose_is_the_integral_of_power_and_the_waking(played)
    every_second_of_every_run_is_goodput_or_badput_or_open(campus, played)
    no_job_is_lost(campus, played)


def runs_turn_exactly_as_a_model_that_scans_the_trace_foresees(
    campus: Campus, played: Play
) -> None:
    truth, rule = Truth(campus), campus.run_rules
    ended: dict[int, float] = {}
    saved: dict[int, float] = {}
    for run in long_runs_of(played.told):
        assert truth.may_start(run.machine, run.start_s), run
        asleep = truth.sleeps(run.machine, run.start_s, ended.get(run.machine, 0.0))
        setup_s = rule.transfer_s + (rule.wake_s if asleep else 0.0)
        expected, worked_s = truth.expected_turns(
            run.job, run.machine, run.start_s, setup_s, saved.get(run.job, 0.0)
        )
        seen = [turn for turn in expected if turn[0] <= campus.span_s and turn[1] != "open"]
        assert run.turns == seen, (run, expected)
        ended[run.machine] = expected[-1][0]
        every_s = rule.checkpoint_every_s
        if every_s < inf and worked_s < inf:
            saved[run.job] = saved.get(run.job, 0.0) + worked_s // every_s * every_s


def energy_by_purpose_is_the_integral_of_power_and_the_waking(played: Play) -> None:
    purposes = played.report["energy_wh"]
    assert min(purposes.values()) >= -1e-9
    assert sum(purposes.values()) * 3600 == pytest.approx(sum(joules(played)), rel=1e-9, abs=1e-6)


def every_second_of_every_run_is_goodput_or_badput_or_open(campus: Campus, played: Play) -> None:
    busy_s = sum(end - begin for spans in working(played).values() for begin, end in spans)
    report = played.report
    active_w = {float(w) for w in campus.active_w}
    done_s = report["goodput_s"] + report["badput_s"]
    assert done_s <= busy_s + 1e-6
    if len(active_w) == 1 and not campus.run_rules.wake_j:
        open_s = report["energy_wh"]["open"] * 3600 / active_w.pop()
        assert done_s + open_s == pytest.approx(busy_s, abs=1e-6)


def no_job_is_lost(campus: Campus, played: Play) -> None:
    jobs = played.report["jobs"]
    assert jobs["submitted"] == len(campus.job_names)
    assert jobs["submitted"] == jobs["completed"] + jobs["removed"] + jobs["unfinished"]


@thorough
@given(campus=detailed_campuses(), share=st.floats(0.1, 0.9))
def test_a_run_until_some_second_is_the_beginning_of_the_whole_run(
    campus: Campus, share: float
) -> None:
    until_s = campus.span_s * share
    whole = play(campus)
    part = Play(campus, [MAKERS["random_match"]()], until_s)
    assert part.told == [event for event in whole.told if event[0] <= until_s]
    assert part.rows == [row for row in whole.rows if row.time_s <= until_s]


@thorough
@given(campus=campuses())
def test_rules_that_never_bite_change_nothing(campus: Campus) -> None:
    """The detailed site and the simple one are the same site where the rules cost nothing."""
    plain = play(campus)
    never = dataclasses.replace(campus, run_rules=RunRules(checkpoint_every_s=1e9))
    assert isinstance(simulated_site(never), DetailedSite)
    assert not isinstance(simulated_site(campus), DetailedSite)
    detailed = play(never)
    assert detailed.told == plain.told
    timing = {"wall_s", "cpu_s", "max_rss_mb"}
    one, other = ({k: v for k, v in p.report.items() if k not in timing} for p in (detailed, plain))
    assert_close(one, other)


def assert_close(one: Any, other: Any) -> None:
    """Equal but for the last digits of sums."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    else:
        assert one == pytest.approx(other)


# -- the meter of these tests -------------------------------------------------------------------


def working(played: Play) -> dict[int, list[tuple[float, float]]]:
    """Return when jobs work on each machine, suspensions left out."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for run in long_runs_of(played.told):
        since: float | None = run.start_s
        for time_s, what in run.turns:
            if since is not None:
                spans.setdefault(run.machine, []).append((since, time_s))
            since = time_s if what == "resumed" else None
        if (since is not None) and (not run.turns or run.turns[-1][1] == "resumed"):
            spans.setdefault(run.machine, []).append((since, played.campus.span_s))
    return spans


def joules(played: Play) -> Iterator[float]:
    """Power of each machine from its events alone, summed over stretches of one state."""
    campus, truth = played.campus, Truth(played.campus)
    spans = working(played)
    runs = long_runs_of(played.told)
    ended: dict[int, float] = {}
    for run in runs:
        if truth.sleeps(run.machine, run.start_s, ended.get(run.machine, 0.0)):
            yield campus.run_rules.wake_j
        ended[run.machine] = run.turns[-1][0] if run.turns else campus.span_s
    for machine in range(len(campus.machine_names)):
        busy = spans.get(machine, [])
        idle_from = [0.0, *(end for _, end in busy)]
        idle_from += [
            time_s
            for time_s, kind, subject, _ in played.told
            if subject == machine and kind in (OWNER_CAME, OWNER_WENT, REBOOTED)
        ]
        marks = sorted({0.0, campus.span_s, *idle_from, *(begin for begin, _ in busy)})
        for begin, end in itertools.pairwise(marks):
            if truth.owned(machine, begin) or any(b <= begin < e for b, e in busy):
                yield float(campus.active_w[machine]) * (end - begin)
                continue
            spec = campus.clusters[int(campus.machine_cluster[machine])]
            is_open = truth.is_open(machine, begin)
            after_s = spec.sleep_after_open_s if is_open else spec.sleep_after_closed_s
            awake_s = min(end - begin, after_s)
            yield float(campus.idle_w[machine]) * awake_s
            yield float(campus.sleep_w[machine]) * (end - begin - awake_s)


# -- in site.toml -------------------------------------------------------------------------------


def test_rules_are_read_from_site_toml_and_written_again(tmp_path: Path) -> None:
    site = (
        "wake_s = 30\nwake_j = 900.5\ntransfer_s = 12\nsuspend_s = inf\n"
        f"checkpoint_every_s = 1800\nend_s = {7 * DAY_S}\n"
    )
    campus = read_campus(made.write_sample(tmp_path, site=site))
    assert campus.run_rules == RunRules(30.0, 900.5, 12.0, inf, 1800.0)
    assert campus.span_s == 7 * DAY_S
    write_campus(campus, tmp_path / "again")
    again = read_campus(tmp_path / "again")
    assert (again.run_rules, again.end_s) == (campus.run_rules, campus.end_s)


def test_rules_are_off_unless_they_are_named(tmp_path: Path) -> None:
    campus = read_campus(made.write_sample(tmp_path))
    assert campus.run_rules == RunRules(0.0, 0.0, 0.0, 0.0, inf)
    write_campus(campus, tmp_path / "again")
    assert "wake" not in (tmp_path / "again" / "site.toml").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("wake_s = -1", '"wake_s" = -1: expected a number, 0 or more'),
        ("wake_j = inf", '"wake_j" = inf'),
        ("transfer_s = nan", '"transfer_s" = nan: expected a number'),
        ("suspend_s = true", '"suspend_s" = true: expected a number'),
        (
            "checkpoint_every_s = 0",
            '"checkpoint_every_s" = 0: expected a number, more than 0',
        ),
        ("end_s = 1.7e9", '"end_s" = 1700000000.0'),
        ("checkpoint_s = 5", 'did you mean "checkpoint_every_s"?'),
    ],
)
def test_impossible_rules_are_refused_and_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_campus(made.write_sample(tmp_path, site=line))
    assert message in str(caught.value)

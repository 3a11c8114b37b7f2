"""Campuses at the edge of what is one: empty, overlapping, unsorted, cut off, huge. They replay."""

import gzip
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.formats.campus.campus import LATEST_S
from outrider.formats.campus.files import read_campus
from outrider.simulation.exogenous_events import owner_intervals
from outrider.testing.hand_campus import (
    DAY_S,
    HOUR_S,
    Session,
    Work,
    make_campus,
    sessions_of,
    with_sessions,
)
from tests.fixtures import made_campuses as made
from tests.fixtures.made_campuses import floats, integers
from tests.fixtures.plays import MAKERS, Play

HEADERS = {name: text.partition("\n")[0] + "\n" for name, text in made.TABLES.items()}


def play(folder: Path) -> Play:
    """The campus of a folder under random matching."""
    return Play(read_campus(folder), [MAKERS["random_match"]()])


def tables(**rows: list[str]) -> dict[str, str]:
    """Tables of a campus, header and rows."""
    return {name: HEADERS[f"{name}.csv"] + "".join(f"{r}\n" for r in rows.get(name, []))
            for name in ("machines", "owners", "jobs")}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "jobs"),
    [
        ({}, {"submitted": 0, "completed": 0, "removed": 0, "unfinished": 0}),
        ({"machines": ["m0,lab,57,40,2"]}, {"submitted": 0, "unfinished": 0}),
        ({"jobs": ["a,0,10,,u,v", "b,5,10,20,u,v"]}, {"completed": 0, "removed": 1}),
        ({"machines": ["m0,lab,57,40,2"], "jobs": ["a,0,10,,u,v", "b,60,,,u,v"]},
         {"completed": 1, "unfinished": 1}),
    ],
)  # fmt: skip
def test_a_campus_may_lack_machines_owners_and_jobs(
    tmp_path: Path, rows: dict[str, list[str]], jobs: dict[str, int]
) -> None:
    told = play(made.write_sample(tmp_path, site="", **tables(**rows))).report["jobs"]
    assert {name: told[name] for name in jobs} == jobs


def test_an_empty_site_toml_means_all_defaults_and_clusters_that_never_close(
    tmp_path: Path,
) -> None:
    campus = read_campus(made.write_sample(tmp_path, site=""))
    assert [c.hours.text for c in campus.clusters] == ["always", "always"]


def test_overlapping_touching_and_repeated_sessions_are_one_stay(tmp_path: Path) -> None:
    merged = ["m0,100,400", "m1,0,50"]
    parts = ["m0,100,200", "m0,150,160", "m0,200,400", "m0,100,200", "m1,0,50", "m1,10,50"]
    machines = ["m0,lab,57,40,2", "m1,lab,57,40,2"]
    jobs = ["a,10,300,,u,v", "b,20,5000,,u,v", "c,500,100,,u,v"]
    folders = []
    for name, owners in (("one", merged), ("other", parts)):
        (tmp_path / name).mkdir()
        rows = tables(machines=machines, owners=owners, jobs=jobs)
        folders.append(made.write_sample(tmp_path / name, site="", **rows))
    one, other = map(play, folders)
    assert other.told == one.told
    assert other.report["energy_wh"] == one.report["energy_wh"]
    assert len(other.campus.login_s) == 6  # reported as the file has them


def test_files_in_any_order_replay_alike(tmp_path: Path) -> None:
    rows = {
        "machines": [f"m{n},lab,57,40,2" for n in range(4)],
        "owners": [f"m{n % 4},{n * 700},{n * 700 + 650}" for n in range(60)],
        "jobs": [f"j{n},{n * 431 + 7},{600 + n},,u,v" for n in range(50)],
    }
    mixed = {name: random.Random(1).sample(lines, len(lines)) for name, lines in rows.items()}
    mixed["machines"] = rows["machines"]  # their order is their number
    folders = []
    for name, lines in (("one", rows), ("other", mixed)):
        (tmp_path / name).mkdir()
        folders.append(made.write_sample(tmp_path / name, site="", **tables(**lines)))
    one, other = map(play, folders)
    assert other.rows == one.rows
    assert len(one.rows) > 50


def test_gzipped_tables_replay_alike(tmp_path: Path) -> None:
    plain = play(made.write_sample(tmp_path))
    for name in made.TABLES:
        packed = gzip.compress((tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.gz").write_bytes(packed)
    assert play(tmp_path).told == plain.told


def test_a_job_that_still_runs_when_the_trace_ends_is_open(tmp_path: Path) -> None:
    rows = tables(machines=["m0,lab,100,40,2"], jobs=["a,600,7200,,u,v"])
    report = play(made.write_sample(tmp_path, site="end_s = 4200", **rows)).report
    assert report["span_s"] == 4_200.0
    assert report["jobs"]["unfinished"] == 1
    assert (report["goodput_s"], report["badput_s"]) == (0.0, 0.0)
    assert report["energy_wh"]["open"] == pytest.approx(100.0)


def test_the_longest_trace_there_may_be_loses_no_digit() -> None:
    """Stays of many machines that end and begin a tenth of a second apart, at the very end."""
    n = 2_000
    campus = make_campus([0] * n, [], [])
    campus = with_sessions(campus, [])
    late = LATEST_S - 1.0
    campus.session_machine = integers(np.repeat(np.arange(n), 3))
    campus.login_s = floats(np.tile([late, late + 0.2, late + 0.2], n))
    campus.logout_s = floats(np.tile([late + 0.1, late + 0.3, late + 0.4], n))
    intervals = owner_intervals(campus)
    assert intervals.came_s.tolist() == [late, late + 0.2] * n
    assert intervals.went_s.tolist() == [late + 0.1, late + 0.4] * n


def test_merging_is_the_union_of_sessions() -> None:
    """Against a count of heads, second by second."""
    rng = random.Random(7)
    for _ in range(50):
        sessions = sorted(
            (Session(rng.randrange(3), float(at), float(at + rng.randrange(12)))
             for at in (rng.randrange(60) for _ in range(12))),
            key=lambda stay: stay.login_s,
        )  # fmt: skip
        campus = make_campus([0, 0, 0], [Work(0.0, HOUR_S)], sessions)
        intervals = owner_intervals(campus)
        for machine in range(3):
            stays = [s for s in sessions_of(campus) if s.machine == machine]
            first, last = intervals.first[machine], intervals.first[machine + 1]
            spans = list(
                zip(intervals.came_s[first:last], intervals.went_s[first:last], strict=True)
            )
            assert all(a[1] < b[0] for a, b in itertools.pairwise(spans))
            for half in range(160):
                assert covered(spans, half / 2) == covered([s[1:] for s in stays], half / 2)


def covered(spans: list[Any], time_s: float) -> bool:
    """Return whether an owner is there, ends included."""
    return any(begin <= time_s <= end for begin, end in spans)


@pytest.mark.parametrize("day", ["2010-03-27", "2010-10-30"])
def test_the_campus_clock_knows_no_daylight_saving(tmp_path: Path, day: str) -> None:
    """Over a week-end on which Europe's clocks change every day has 24 hours.

    So on Monday a machine that its owner leaves before nine opens to jobs at once, and one that
    he leaves after nine opens when the delay of an open cluster has passed.
    """
    site = (
        f'start = {day}T00:00:00\nreboot = "never"\nidle_before_job_open_s = 900\n'
        '[clusters.lab]\nopen = "mon-fri 09:00-17:00"\n'
    )  # a Saturday
    monday_9h = 2 * DAY_S + 9 * HOUR_S
    visits = [f"m0,{monday_9h - 120},{monday_9h - 60}", f"m0,{monday_9h + 60},{monday_9h + 120}"]
    jobs = [f"a,{monday_9h - 60},10,,u,v", f"b,{monday_9h + 121},10,,u,v"]
    rows = tables(machines=["m0,lab,57,40,2"], owners=visits, jobs=jobs)
    folder = made.write_sample(tmp_path, site=f"end_s = {4 * DAY_S}\n{site}", **rows)
    starts = [row.time_s for row in play(folder).rows if row.action == "start"]
    assert starts == [monday_9h - 60, monday_9h + 120 + 900]

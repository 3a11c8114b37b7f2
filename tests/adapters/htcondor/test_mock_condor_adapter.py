"""The `mock_condor` adapter: what its settings mean, and that chance is only its seed."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from outrider.api import ConfigurationError, NamedEvent, build
from outrider.formats.campus.files import write_campus
from outrider.model.events import COMPLETED, EVICTED, KIND_NAMES, OWNER_CAME, STARTED, SUBMITTED
from outrider.testing.campuses import tiny_campus
from tests.adapters.htcondor.watched_pool import WatchedPool  # noqa: F401 - skips without the bindings

from outrider_adapters.mock_condor import (  # isort: skip
    MockCondorAdapter,
    MockCondorSettings,
)

DAY_S = 86_400.0
MACHINE = '[[machines]]\nname = "m1"\n'
WITHOUT_BINDINGS = """
import sys
sys.modules["htcondor2"] = None
from outrider.api import PluginError
from outrider.plugins.finding import load_adapter
try:
    load_adapter("mock_condor")
except PluginError as error:
    print(error)
"""


def adapter(**given: Any) -> MockCondorAdapter:
    quick = {"speed": 1e9, "look_s": 300.0, "negotiator_interval_s": 300.0}
    return MockCondorAdapter("mock", build(MockCondorSettings, quick | given, "test"))


def life(made: MockCondorAdapter, until_s: float) -> list[NamedEvent]:
    """Return the events of the first seconds, without the event loop."""
    made.begin(None)
    batch = made.look()
    reported = batch.events
    end_s = reported[0][0] + until_s
    while (batch.seen_until_s or 0.0) < end_s:
        batch = made.look()
        reported = reported + batch.events
    made.end()
    return [event for event in reported if event[0] <= end_s]


@pytest.fixture
def campus(tmp_path: Path) -> Path:
    """Three days of twelve machines."""
    write_campus(tiny_campus(), tmp_path / "campus")
    return tmp_path / "campus"


def test_a_campus_lives_on_the_pool_with_its_owners_users_and_vos(campus: Path) -> None:
    reported = life(adapter(campus=str(campus)), 2.5 * DAY_S)
    original = tiny_campus()
    counted = Counter(event[1] for event in reported)
    until_s = max(event[0] for event in reported) - original.start.timestamp()
    assert counted[SUBMITTED] == int((original.submit_s <= until_s).sum()) == 150
    assert counted[OWNER_CAME] > 30
    assert counted[EVICTED] > 0
    assert counted[COMPLETED] > 100
    assert counted[STARTED] >= counted[COMPLETED] + counted[EVICTED]
    assert {event[3].vo for event in reported if event[1] == SUBMITTED} == {"biology", "physics"}
    assert {event[3].user for event in reported if event[1] == SUBMITTED} == {"ann", "bob", "eve"}


def test_no_job_starts_where_an_owner_sits_or_sat_a_moment_ago(campus: Path) -> None:
    closed: set[str] = set()
    starts = 0
    for _, kind, name, extra in life(adapter(campus=str(campus)), DAY_S):
        word = KIND_NAMES[kind]
        if word in ("owner_came", "drained"):
            closed.add(name)
        elif word == "usable":
            closed.discard(name)
        elif word == "started":
            starts += 1
            assert extra[0] not in closed
    assert starts > 20


def test_the_same_seed_tells_the_same_and_another_does_not(campus: Path) -> None:
    one, same, other = (life(adapter(campus=str(campus), seed=seed), DAY_S) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_faults_are_settings(campus: Path) -> None:
    made = adapter(campus=str(campus), faults={"duplicate_record_ratio": 1.0})
    reported = life(made, DAY_S)
    submitted = Counter(event[2] for event in reported if event[1] == SUBMITTED)
    assert set(submitted.values()) == {2}


def test_an_unknown_fault_is_refused_by_name(campus: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"faults.*outage_ratoi.*outage_ratio"):
        adapter(campus=str(campus), faults={"outage_ratoi": 1.0})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"pool.toml.*machines"),
        ("machines = 3", r"machines"),
        ("[[machines]]\nname = 1", r"machines\]\] 1"),
        (MACHINE + '[[owners]]\nmachine = "m2"\ncame_s = 0', r'"m2" is none of'),
        (MACHINE + '[[owners]]\nmachine = "m1"\ncame_s = 9\nwent_s = 3', r"went_s = 3.*9"),
        (MACHINE + '[[jobs]]\nuser = "ann"', r"jobs\]\] 1.*run_s"),
        (MACHINE + '[[jobs]]\nuser = "ann"\nrun_s = 1\nsubmit = {ranc = "1"}', r'"ranc".*"rank"'),
        (MACHINE + '[[jobs]]\nuser = "ann"\nruns = 1', r'"runs".*run_s'),
        ("[[machines]\n", r"cannot be read as TOML"),
    ],
)
def test_a_pool_file_that_is_wrong_is_refused_by_its_place(
    tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "pool.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=says):
        adapter(pool=str(tmp_path / "pool.toml"))


def test_a_pool_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        adapter(pool=str(tmp_path / "nowhere.toml"))


def test_settings_that_exclude_each_other_are_refused(campus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'"pool" = .* and "campus" = .*expected one'):
        adapter(pool=str(tmp_path / "pool.toml"), campus=str(campus))


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r'"start" = .soon.*2010-02-01'):
        adapter(start="soon")


@pytest.mark.parametrize("cursor", [7, {}, {"looks": "many"}])
def test_a_cursor_of_another_adapter_is_refused(campus: Path, cursor: object) -> None:
    with pytest.raises(ValueError, match="no cursor of the mock_condor adapter"):
        adapter(campus=str(campus)).begin(cursor)


def test_a_made_up_campus_has_the_size_that_was_asked_for() -> None:
    made = adapter(machines=9, clusters=3, weeks=0.2)
    assert len(made.clusters()) == 3
    made.begin(None)
    assert len([e for e in made.look().events if KIND_NAMES[e[1]] == "joined"]) == 9
    made.end()


def test_without_the_bindings_it_says_what_to_install() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_BINDINGS], capture_output=True, text=True, check=True
    )
    assert "pip install 'outrider[htcondor]'" in said.stdout


def test_the_pool_of_the_documentation_runs(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs/mock-condor.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n# pool.toml\n")[2].partition("```")[0]
    (tmp_path / "pool.toml").write_text(text)
    reported = life(adapter(pool=str(tmp_path / "pool.toml")), 3 * 3600.0)
    counted = Counter(KIND_NAMES[event[1]] for event in reported)
    assert (counted["joined"], counted["owner_came"], counted["owner_went"]) == (2, 1, 1)
    assert counted["submitted"] == counted["completed"] == 10

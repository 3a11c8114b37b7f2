"""Off-policy checks from journals: their results, and their refusals."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest

from outrider.engine import PolicyRunner
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import write_campus
from outrider.journal import Entry, Journal
from outrider.journal.site_facts import Incumbent, SiteFacts
from outrider.model import events as ev
from outrider.model.errors import ConfigurationError, PluginError
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec, SiteHabits
from outrider.model.modes import FIRST_FIT
from outrider.plugins.finding import make_policy
from outrider.service.demo.simulated_journal import write_journal
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.off_policy.journal import (
    DecisionsOnRecord,
    off_policy_of_journal,
    recorded_starts,
)
from outrider.twin.off_policy.starts import Start
from tests.fixtures.one_step import AskedRunner, OneStep
from tests.replay.recordings import write_journal as write_events

DAY_S = 86_400.0
NOTHING = DecisionsOnRecord({}, frozenset())


@pytest.fixture(scope="module")
def campus() -> Campus:
    """Return two weeks of a generated campus."""
    return generate_campus(21, weeks=2.0, machines=60, clusters=4, bad_jobs=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, campus: Campus) -> Path:
    """Write two weeks of a campus with jobs that never end; `early` is its first four days."""
    folder = tmp_path_factory.mktemp("off_policy")
    write_campus(campus, folder / "campus")
    write_journal(folder / "campus", folder / "whole.sqlite", seed=3)
    write_journal(folder / "campus", folder / "early.sqlite", seed=3, until_s=4 * DAY_S)
    write_journal(folder / "campus", folder / "watts.sqlite", seed=3, incumbent="lowest_watts")
    return folder


def starts_of(journal: Path, *policies: str) -> list[Start]:
    site = Site(ZoneTime("UTC"), [], 3 * 3600.0)
    runners = [
        PolicyRunner(make_policy(name, {}, 0, "test"), acting=False, reconsider_s=3600.0)
        for name in policies
    ]
    gathered, _ = recorded_starts(journal, site, runners, NOTHING, random.Random(1))
    return gathered.starts


def test_the_incumbent_changes_nothing_and_a_rule_is_estimated(folder: Path) -> None:
    check = off_policy_of_journal(folder / "whole.sqlite", ["random_match", "lowest_watts"])
    own, rule = check["random_match"], check["lowest_watts"]
    assert (own.refused, rule.refused, own.incumbent) == ((), (), "random_match")
    assert own.difference is not None
    assert rule.difference is not None
    assert own.difference.value == pytest.approx(0.0, abs=1e-12)
    assert own.effective_n == pytest.approx(own.starts_n)
    assert rule.effective_n is not None
    assert 100 < rule.effective_n < rule.starts_n
    assert rule.mean_weight == pytest.approx(1.0, abs=0.1)
    assert rule.difference.low < rule.difference.value < rule.difference.high
    days = len({start.day_s for start in starts_of(folder / "whole.sqlite")})
    assert (rule.clusters, rule.clusters_n, rule.outside_n) == ("days", days, 0)
    assert rule.propensities is not None
    assert rule.propensities.failures() == []
    assert json.loads(json.dumps(rule.to_json()))["difference"]["value"] == rule.difference.value


def test_every_start_counts_and_killed_runs_count_as_lost(folder: Path) -> None:
    with Journal(folder / "whole.sqlite", read_only=True) as journal:
        events = [event for _, _, event in journal.inputs_after(0)]
    running: set[str] = set()
    ends = {ev.COMPLETED: 0, ev.EVICTED: 0, ev.REMOVED: 0}
    for _, kind, subject, _ in events:
        if kind == ev.STARTED:
            running.add(subject)
        elif kind in ends and subject in running:
            running.remove(subject)
            ends[kind] += 1
    check = off_policy_of_journal(folder / "whole.sqlite", ["random_match"])["random_match"]
    assert ends[ev.REMOVED] > 0, "the campus has jobs that are killed while they run"
    assert (check.starts_n, check.running_n) == (sum(ends.values()), len(running))
    assert check.incumbent_ratio is not None
    assert check.incumbent_ratio.value == pytest.approx(ends[ev.COMPLETED] / check.starts_n)


def test_the_truth_of_one_step_is_within_a_wide_interval(folder: Path, campus: Campus) -> None:
    """The truth is whether each start would have completed on each free machine, by the trace."""
    truth = OneStep(campus)
    runner = AskedRunner(make_policy("lowest_watts", {}, 0, "test"))
    gathered, _ = recorded_starts(
        folder / "whole.sqlite",
        Site(ZoneTime("UTC"), [], 3 * 3600.0),
        [runner],
        NOTHING,
        random.Random(1),
    )
    changes = [
        truth.change(asked)
        for asked, start in zip(runner.asked, gathered.starts, strict=True)
        if start.completed is not None
    ]
    check = off_policy_of_journal(folder / "whole.sqlite", ["lowest_watts"], level=0.999)
    found = check["lowest_watts"].difference
    assert found is not None
    assert found.high - found.low < 0.2
    assert found.low < np.mean(changes) < found.high


def test_what_a_candidate_would_do_depends_on_nothing_later(folder: Path) -> None:
    """Check a learner and a rule; a journal that ends early has the same starts until then."""
    names = ("survival", "bandit")
    early = starts_of(folder / "early.sqlite", *names)
    whole = starts_of(folder / "whole.sqlite", *names)
    assert len(early) > 100
    for one, other in zip(early, whole, strict=False):
        assert (one.chances, one.free_n, one.group) == (other.chances, other.free_n, other.group)


def test_a_journal_is_only_read(folder: Path) -> None:
    journal = folder / "early.sqlite"
    before = hashlib.sha256(journal.read_bytes()).hexdigest()
    off_policy_of_journal(journal, ["bandit"])
    assert hashlib.sha256(journal.read_bytes()).hexdigest() == before
    again = [off_policy_of_journal(journal, ["bandit"])["bandit"].to_json() for _ in range(2)]
    assert again[0] == again[1]


def test_an_incumbent_that_is_not_random_is_refused(folder: Path) -> None:
    check = off_policy_of_journal(folder / "watts.sqlite", ["survival"])["survival"]
    assert check.incumbent == "lowest_watts"
    assert len(check.refused) == 1
    assert "does not choose machines at random" in check.refused[0]
    assert check.difference is None


def test_an_incumbent_that_only_claims_to_be_random_is_found_out(folder: Path) -> None:
    claim = off_policy_of_journal(
        folder / "watts.sqlite", ["bandit"], incumbent="random_match"
    )["bandit"]  # fmt: skip
    assert any("does not choose at random" in why for why in claim.refused)
    assert (claim.difference, claim.candidate_ratio) == (None, None)
    assert claim.propensities is not None
    assert max(map(abs, claim.propensities.groups.values())) > 4


def test_too_small_an_effective_sample_is_refused_and_shown(folder: Path) -> None:
    check = off_policy_of_journal(folder / "early.sqlite", ["best_fit"])["best_fit"]
    assert check.effective_n is not None
    assert check.effective_n < 100
    assert any("effective sample size" in why for why in check.refused)
    assert (check.difference, check.snips_difference) == (None, None)


@pytest.mark.parametrize(
    ("policy", "why"), [("replan", "plans whole"), ("clairvoyant", "true run")]
)
def test_what_cannot_be_asked_for_one_start_is_refused(folder: Path, policy: str, why: str) -> None:
    check = off_policy_of_journal(folder / "early.sqlite", [policy, "lowest_watts"])
    assert any(why in each for each in check[policy].refused)
    assert check["lowest_watts"].starts_n > 0


def test_wrong_questions_are_errors(folder: Path) -> None:
    journal = folder / "early.sqlite"
    with pytest.raises(ConfigurationError, match="more than once"):
        off_policy_of_journal(journal, ["fifo", make_policy("fifo", {}, 1, "test")])
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        off_policy_of_journal(journal, ["fifo"], level=90)
    with pytest.raises(PluginError):
        off_policy_of_journal(journal, ["no_such_policy"])


def by_hand(path: Path, events: list[NamedEvent], incumbent: str | None) -> Path:
    write_events(path, events, events[-1][0] + 60.0)
    named = None if incumbent is None else Incumbent(incumbent, "site")
    with Journal(path) as journal:
        journal.append(Entry(meta=SiteFacts(FIRST_FIT, SiteHabits(), (), named).as_meta()))
    return path


def test_starts_where_the_record_has_no_room_are_counted_and_refused(tmp_path: Path) -> None:
    noon = 1_767_960_000.0
    events: list[NamedEvent] = [
        (noon, ev.JOINED, name, MachineSpec(cluster="lab")) for name in ("pc1", "pc2", "pc3")
    ]
    for n in range(40):
        at, job = noon + n * 3600.0, f"{n}.0"
        busy = "pc1" if n == 7 else "pc2"
        events += [
            (at, ev.OWNER_CAME, "pc1", None),
            (at, ev.SUBMITTED, job, JobSpec(user="ann")),
            (at + 1.0, ev.STARTED, job, (busy, 1)),
            (at + 600.0, ev.COMPLETED, job, None),
            (at + 700.0, ev.OWNER_WENT, "pc1", None),
        ]
    journal = by_hand(tmp_path / "journal.sqlite", events, "random_match")
    check = off_policy_of_journal(journal, ["fifo"])["fifo"]
    assert (check.outside_n, check.starts_n) == (1, 39)
    assert any("were not free" in why for why in check.refused)
    unknown = by_hand(tmp_path / "unknown.sqlite", events, None)
    check = off_policy_of_journal(unknown, ["fifo"])["fifo"]
    assert check.refused
    assert "not known" in check.refused[0]

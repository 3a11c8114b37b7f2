"""Canary trials: registration, continuation over restarts, end, and cancellation."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from outrider.service.canary_trial.record import active_trial, trial_shown
from outrider.service.canary_trial.trial import DaySums, Trial
from outrider.service.commands.evidence import against
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.mode_limit import BY_COMMAND, ModeLimit
from outrider.service.shapes.values import Compared, Evidence, TrialOutcome
from tests.service.canary_trial.trial_site import Site, configured
from tests.service.canary_trial.trials import SUNDAY_S, at


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A daemon that has just begun its canary."""
    found = Site(tmp_path, configured())
    found.look()
    return found


def test_it_is_registered_once_and_stands_in_the_journal(site: Site) -> None:
    site.look(SUNDAY_S + 60.0)
    assert [record.command for record in site.records] == ["trial"]
    assert msgspec.json.decode(site.records[0].detail, type=Trial) == site.registered
    assert site.on_record() == site.trial
    assert site.registered.registered_s == SUNDAY_S < site.registered.midnights_s[0]


def test_what_waits_is_decided_anew_wherever_acting_begins_or_ends(site: Site) -> None:
    trial = site.registered
    for day in range(14):
        site.look(at(trial, day))
        site.look(at(trial, day, 13.0))
    site.look(trial.midnights_s[-1])
    acting = [False, *trial.acts, False]
    assert site.decided_again == sum(a != b for a, b in pairwise(acting))


def test_a_restart_goes_on_with_the_same_trial_and_decides_anew_on_an_acting_day(
    site: Site, tmp_path: Path
) -> None:
    trial = site.registered
    again = Site(tmp_path, configured(), site.on_record())
    again.look(at(trial, trial.acts.index(True)))
    again.look()
    assert again.registered == trial == again.core.trial.trial
    assert [record.why for record in again.records] == ["continues after a restart of the daemon"]
    assert again.trial is not None
    assert (again.trial.state, again.trial.restarts) == ("running", 1)
    assert again.on_record() == again.trial
    assert again.decided_again == 1


def test_a_trial_over_which_the_configuration_changed_at_a_restart_is_broken_off(
    site: Site, tmp_path: Path
) -> None:
    again = Site(tmp_path, configured(canary_days=28), site.on_record())
    again.look(at(site.registered, 3))
    assert [record.why.split(":")[0] for record in again.records] == ["broken off", "registered"]


def test_a_record_that_cannot_be_read_is_told_before_another_trial_begins(site: Site) -> None:
    site.trial, site.trial_lost = None, "Object missing required field `trial`"
    again = site.new_watch()
    asyncio.run(again.look())
    reasons = [record.why for record in site.records]
    assert reasons[1].startswith("broken off: its record cannot be read: Object missing")
    assert reasons[2].startswith("registered: ")


def test_while_nothing_can_be_recorded_no_step_is_taken(site: Site) -> None:
    site.recording.failure = "the disk is full"
    site.look(site.registered.ends_s)
    assert site.trial == site.on_record()
    site.recording.failure = None
    site.look()
    assert site.trial is not None
    assert site.trial.state == "ended"


def test_a_command_or_guard_that_ends_the_acting_breaks_it_off_though_the_mode_cannot_follow(
    site: Site,
) -> None:
    site.limit = ModeLimit("shadow", 0.0, "canary", BY_COMMAND)
    site.look(at(site.registered, 3))
    assert site.trial is not None
    assert (site.trial.state, site.trial.why) == ("broken_off", "the mode was lowered to shadow")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (configured(mode="shadow"), "the mode is shadow"),
        (configured(mode="active"), "the mode is active"),
        (configured(canary_by="jobs", canary_fraction=0.1), "the canary is no longer by days"),
    ],
)
def test_another_mode_or_canary_breaks_it_off(site: Site, changed: LoadedConfig, why: str) -> None:
    site.look(at(site.registered, 3), changed)
    assert site.trial is not None
    assert (site.trial.state, site.trial.why, site.trial.outcome) == ("broken_off", why, None)
    assert site.records[-1].why == f"broken off: {why}"
    assert site.core.trial.trial is None
    assert site.on_record() == site.trial


def test_another_configuration_breaks_it_off_and_is_a_trial_of_its_own(site: Site) -> None:
    first = site.registered
    site.look(at(first, 3), configured(longest_deferral_s=60.0))
    assert [record.why.split(":")[0] for record in site.records] == [
        "registered", "broken off", "registered",
    ]  # fmt: skip
    assert site.registered.midnights_s[0] == first.midnights_s[4]
    assert site.core.trial.trial == site.registered


def test_under_another_configuration_its_days_do_not_act_before_anybody_looks(site: Site) -> None:
    assert active_trial(site.trial, configured().config) == site.registered
    assert active_trial(site.trial, configured(canary_seed=4).config) is None


def test_it_ends_a_day_after_its_last_with_what_it_came_to_and_no_other_begins(site: Site) -> None:
    trial = site.registered
    for sums, acts in zip(site.core.trial.days, trial.acts, strict=True):
        fresh = DaySums(1e6, 1e6 if acts else 2e6, 1e8, 10, 10, 1e3, 10)
        for name in DaySums.__struct_fields__:
            setattr(sums, name, getattr(fresh, name))
    site.look(trial.ends_s - 1.0)
    assert site.trial is not None
    shown = trial_shown(site.trial, trial.ends_s - 1.0)
    assert shown is not None
    assert (shown.state, shown.days_done, shown.outcome) == ("running", 14, None)
    site.look(trial.ends_s)
    assert site.trial.outcome is not None
    assert site.trial.outcome.measures["badput_ratio"].estimate == pytest.approx(0.5)
    for more_s in (60.0, 86_400.0):
        site.look(trial.ends_s + more_s)
    assert site.registered == trial
    assert len(site.records) == 2
    assert json.loads(site.records[1].detail)["pairs"] == 7


def test_after_its_end_a_canary_that_was_left_and_begun_again_is_another_trial(site: Site) -> None:
    first = site.registered
    site.look(first.ends_s)
    site.look(first.ends_s + 60.0, configured(mode="shadow"))
    site.look(first.ends_s + 120.0, configured())
    assert site.registered.registered_s == first.ends_s + 120.0
    assert [record.why.split(":")[0] for record in site.records] == [
        "registered", "ended at its registered length", "its canary was left", "registered",
    ]  # fmt: skip


def test_while_it_goes_on_nobody_climbs_to_active(site: Site) -> None:
    found = Evidence(
        mode="canary", mode_since_s=None, configured_mode="active", next_mode="active",
        watched_s=1.0, needed_s=0.0, policies=[], guards=[], sources=[],
        trial=trial_shown(site.trial, at(site.registered, 2)),
    )  # fmt: skip
    assert "the canary trial is running: 2 of 14 days are done" in against(found)
    assert found.trial is not None
    ended = msgspec.structs.replace(found.trial, state="ended")
    over = msgspec.structs.replace(found, trial=ended)
    harmful = TrialOutcome(14, {"badput_ratio": Compared(1.3, 1.1, 1.5, 1.3, 1.0)})
    worse = msgspec.structs.replace(ended, outcome=harmful)
    why = "in the canary trial badput was significantly higher: 1.100 to 1.500"
    assert why in against(msgspec.structs.replace(found, trial=worse))
    assert not [why for why in against(over) if "trial" in why]

"""Tests of known names: invalid and departed ones do not block later ones indefinitely."""

import pytest

from outrider_adapters.mqtt.deduplicator import LEFT_FOR_S, SILENT_FOR_S, Names
from outrider_adapters.mqtt.messages import Refused
from tests.adapters.mqtt.test_meaning import NOW_S, meaning, reported

MAX_NAMES = 100


def names(metered: int = 0, present: int = 0) -> Names[str]:
    made: Names[str] = Names(MAX_NAMES)
    for n in range(metered):
        made.record(f"meter{n}", "", NOW_S + n, True)
    for n in range(present):
        made.record(f"junk{n}", "", NOW_S + n, False)
    return made


def test_names_that_only_meters_know_give_way_at_once() -> None:
    known = names(metered=MAX_NAMES)
    for n in range(MAX_NAMES):
        known.record(f"lab-{n}", "", NOW_S, False)
    assert len(known) == MAX_NAMES
    with pytest.raises(Refused):
        known.record("meter1", "", NOW_S, True)


def test_a_metered_name_that_turns_out_to_be_a_machine_stays() -> None:
    known = names(metered=MAX_NAMES)
    known.record("meter0", "", NOW_S, False)
    for n in range(MAX_NAMES - 1):
        known.record(f"lab-{n}", "", NOW_S, False)
    assert known.find("meter0") is not None
    known.record("meter0", "", NOW_S, True)
    assert known.find("meter0") is not None


def test_the_one_that_was_silent_for_longest_gives_way_after_a_day() -> None:
    known = names(present=MAX_NAMES)
    with pytest.raises(Refused):
        known.record("lab-1", "", NOW_S + SILENT_FOR_S, False)
    known.record("junk0", "", NOW_S + SILENT_FOR_S, False)  # speaks again
    known.record("lab-1", "", NOW_S + SILENT_FOR_S + 2, False)
    assert known.find("junk0") is not None
    assert known.find("junk1") is None
    assert len(known) == MAX_NAMES


def test_who_left_gives_way_after_an_hour() -> None:
    known = names(present=MAX_NAMES)
    known.leave("junk7")
    with pytest.raises(Refused):
        known.record("lab-1", "", NOW_S + 60, False)
    known.record("lab-1", "", NOW_S + LEFT_FOR_S + 60, False)
    assert known.find("junk7") is None


def test_names_heard_while_the_clock_was_ahead_give_way() -> None:
    known = names()
    for n in range(MAX_NAMES):
        known.record(f"junk{n}", "", NOW_S + 1e9, False)
    known.record("lab-1", "", NOW_S, False)
    assert len(known) == MAX_NAMES


def test_a_site_full_of_junk_hears_of_its_machines_again() -> None:
    asked = meaning(max_machines=MAX_NAMES)
    for n in range(5 * MAX_NAMES):
        reported(f"outrider/in/owner/junk{n}", {"present": True}, asked)
    assert not reported("outrider/in/owner/lab-1", {"present": True}, asked)
    later_s = NOW_S + SILENT_FOR_S + 1
    assert reported("outrider/in/owner/lab-1", {"present": True}, asked, at_s=later_s)
    for n in range(5 * MAX_NAMES):
        reported(f"outrider/in/state/drain{n}", {"state": "drained"}, asked, at_s=later_s + 1e6 * n)
    assert len(asked.save()["drained"]) <= MAX_NAMES

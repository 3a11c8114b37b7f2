"""Watts come from attributes of slot ads that a site names, and from nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from outrider.api import MachineSpec, NamedEvent, events
from outrider_adapters.htcondor import WatchSettings
from outrider_adapters.htcondor.machines import StateWatts, WattsOfAds, changes, machines_of
from outrider_adapters.htcondor.pool_calls import ClassAd, ExprTree
from tests.adapters.htcondor.watched_pool import WatchedPool

NAMES = WatchSettings(
    watts_attribute="MachineWatts", active_w_attribute="ActiveWatts",
    idle_w_attribute="IdleWatts", sleep_w_attribute="SleepWatts",
    left_after_s=0, snapshot_s=1, repair_after_s=5,
)  # fmt: skip
AD = {"Name": "slot1@pc", "State": "Unclaimed", "Cpus": 1, "MyCurrentTime": 100}


def readings(watts: WattsOfAds, told_s: float, *ads: dict[str, Any]) -> list[NamedEvent]:
    """Return the power events of a machine with these slots."""
    return watts.news("pc", [AD | {"MyCurrentTime": told_s} | ad for ad in ads], told_s)


def test_a_reading_is_told_when_it_changes_and_before_it_grows_old() -> None:
    watts = WattsOfAds(NAMES)
    power = events.POWER
    assert readings(watts, 100.0, {"MachineWatts": 57.5}) == [(100.0, power, "pc", 57.5)]
    assert readings(watts, 130.0, {"MachineWatts": 57.5}) == []
    assert readings(watts, 160.0, {"MachineWatts": 58}) == [(160.0, power, "pc", 58.0)]
    assert readings(watts, 459.0, {"MachineWatts": 58}) == []
    assert readings(watts, 460.0, {"MachineWatts": 58}) == [(460.0, power, "pc", 58.0)]
    watts.forget("pc")
    assert readings(watts, 461.0, {"MachineWatts": 58}) == [(461.0, power, "pc", 58.0)]


def test_all_slots_tell_of_the_whole_machine_and_the_newest_ad_counts() -> None:
    old = {"Name": "slot2@pc", "MachineWatts": 90.0, "MyCurrentTime": 50}
    assert readings(WattsOfAds(NAMES), 100.0, {"MachineWatts": 60.0}, old)[0][3] == 60.0


@pytest.mark.parametrize(
    "watts", ["57", True, -1.0, float("nan"), float("inf"), 2e6, ExprTree("undefined")]
)
def test_what_cannot_be_watts_is_no_reading(watts: Any) -> None:
    ad = ClassAd(AD)
    ad["MachineWatts"] = ad["IdleWatts"] = watts
    found = WattsOfAds(NAMES)
    assert found.news("pc", [ad], 100.0) == []
    assert found.of_states(ad) == StateWatts()


def test_an_expression_counts_as_what_it_comes_to() -> None:
    ad = ClassAd(AD)
    ad["MachineWatts"] = ExprTree("Cpus * 40.5")
    assert WattsOfAds(NAMES).news("pc", [ad], 100.0)[0][3] == 40.5


def test_a_site_that_names_no_attribute_reads_none() -> None:
    reported = AD | {"MachineWatts": 57.5, "ActiveWatts": 90.0}
    watts = WattsOfAds(WatchSettings())
    assert watts.attributes == []
    assert watts.news("pc", [reported], 100.0) == []
    assert watts.of_states(reported) == StateWatts()


def test_a_machine_joins_with_the_watts_of_its_states_and_again_when_they_change() -> None:
    of_states = WattsOfAds(NAMES).of_states

    def machine(**ad: Any) -> Any:
        ads = [AD | ad, AD | {"Name": "slot2@pc", "ActiveWatts": 90.0}]
        return machines_of(ads, set(), lambda name, ad: "A", of_states)["pc"]

    before = machine(IdleWatts=40)
    assert before.spec == MachineSpec(
        "A", cpus=2, active_w=90.0, idle_w=40.0, resources=before.spec.resources
    )
    [joined] = changes("pc", before, machine(IdleWatts=35))
    assert (joined[1], joined[3].idle_w) == (events.JOINED, 35.0)
    assert changes("pc", before, machine(IdleWatts=40)) == []


def test_a_pool_tells_its_watts(tmp_path: Path) -> None:
    site = WatchedPool(tmp_path, settings=NAMES)
    site.look()
    site.pool.publish("m1", "MachineWatts", "61.5")
    site.pool.publish("m1", "ActiveWatts", "90.0")
    reported = site.reported(20)
    assert [(kind, name, extra) for kind, name, extra in reported if kind == "power"] == [
        ("power", "m1", 61.5)
    ]
    assert [(name, spec.active_w) for kind, name, spec in reported if kind == "joined"] == [
        ("m1", 90)
    ]
    site.close()

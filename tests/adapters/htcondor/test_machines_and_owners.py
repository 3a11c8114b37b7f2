"""Successive ads of slots become what happened to machines and owners."""

from pathlib import Path
from typing import Any

from outrider.api import MachineSpec, Resources, events
from outrider_adapters.htcondor import WatchSettings
from outrider_adapters.htcondor.access_points import LoggedAccessPoint
from outrider_adapters.htcondor.machines import MachineState, changes, machines_of
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.htcondor.slots import SlotWatch, _dated
from outrider_adapters.mock_condor.collector import Machine
from tests.adapters.htcondor.watched_pool import BEGIN_S, WatchedPool, kinds

SIZE = Resources(memory_mib=2048.0, gpus=0.0)


def slot(name: str = "slot1@pc", **attributes: object) -> dict[str, object]:
    ad = {"Name": name, "State": "Unclaimed", "Cpus": 1, "EnteredCurrentState": 50}
    return ad | {"MyCurrentTime": 100, "LastHeardFrom": 101} | attributes


def machine(*ads: dict[str, object]) -> MachineState:
    return machines_of(ads, set(), lambda name, ad: "A")["pc"]


def test_memory_and_gpus_are_those_of_all_slots_and_dynamic_ones_are_parts() -> None:
    whole = slot(PartitionableSlot=True, Cpus=2, TotalSlotCpus=8, Memory=100,
                 TotalSlotMemory=16_000, TotalSlotGPUs=2)  # fmt: skip
    part = slot("slot1_1@pc", DynamicSlot=True, Cpus=6, Memory=15_900, GPUs=2)
    found = machine(whole, part, slot("slot2@pc", Memory=500))
    assert (found.cpus, found.memory_mib, found.gpus) == (9, 16_500.0, 2.0)


def test_every_machine_joins_once_with_its_cluster_and_cpus(site: WatchedPool) -> None:
    reported = site.reported()
    assert reported == [
        ("joined", name, MachineSpec(cluster=cluster, cpus=1, resources=SIZE))
        for name, cluster in (("m1", "A"), ("m2", "A"), ("m3", "B"), ("m4", "B"))
    ]
    assert site.reported(after_s=600) == []


def test_an_owner_comes_and_goes_at_the_moments_that_htcondor_tells(site: WatchedPool) -> None:
    site.look()
    site.pool.advance(BEGIN_S + 100)
    site.pool.owner_came("m2")
    came = site.look(after_s=20).events
    assert came == [(BEGIN_S + 100, events.OWNER_CAME, "m2", None)]

    site.pool.advance(BEGIN_S + 200)
    site.pool.owner_went("m2")
    went = site.look(after_s=20).events
    assert went == [
        (BEGIN_S + 200, events.OWNER_WENT, "m2", None),
        (BEGIN_S + 200, events.USABLE, "m2", None),
    ]


def test_a_machine_that_refuses_every_job_is_drained_and_opens_again(site: WatchedPool) -> None:
    site.look()
    site.pool.publish("m1", "Start", "false")
    assert kinds(site.reported(10), "m1") == ["drained"]
    site.pool.publish("m1", "Start", "OwnerActive isnt true")
    assert kinds(site.reported(10), "m1") == ["usable"]


def test_an_owner_on_a_drained_machine_leaves_it_closed(site: WatchedPool) -> None:
    site.look()
    site.pool.publish("m1", "Draining", "true")
    assert kinds(site.reported(10), "m1") == ["drained"]
    site.pool.owner_came("m1")
    assert kinds(site.reported(10), "m1") == ["owner_came"]
    site.pool.owner_went("m1")
    assert kinds(site.reported(10), "m1") == ["owner_went"]


def test_a_sleeping_machine_is_asleep_until_it_wakes(site: WatchedPool) -> None:
    site.look()
    site.pool.publish("m3", "Offline", "true")
    assert kinds(site.reported(10), "m3") == ["asleep"]
    site.pool.publish("m3", "Offline", "false")
    assert kinds(site.reported(10), "m3") == ["woken"]


def test_a_machine_has_left_when_its_ads_are_missing_for_long_enough(tmp_path: Path) -> None:
    site = WatchedPool(tmp_path, settings=WatchSettings(left_after_s=100))
    site.look()
    site.pool.leave("m4")
    assert site.reported(10) == [("drained", "m4", None)], "switched off: nothing is free there"
    assert site.reported(60) == [], "70 s away, and gone already"
    assert site.reported(60) == [("left", "m4", None)]
    site.pool.join(Machine(name="m4", cluster="C", cpus=2))
    assert site.reported(10) == [("joined", "m4", MachineSpec(cluster="C", cpus=2, resources=SIZE))]
    site.close()


def test_a_machine_that_comes_back_soon_has_not_left(tmp_path: Path) -> None:
    site = WatchedPool(tmp_path, settings=WatchSettings(left_after_s=100))
    site.look()
    site.pool.leave("m4")
    assert site.reported(60) == [("drained", "m4", None)]
    site.pool.join(Machine(name="m4", cluster="B"))
    assert site.reported(60) == [("usable", "m4", None)]
    site.close()


def test_a_restarted_collector_closes_no_machine(tmp_path: Path) -> None:
    site = WatchedPool(tmp_path, settings=WatchSettings(left_after_s=100))
    site.look()
    for name in site.names[1:]:
        site.pool.leave(name)
    assert site.reported(60) == [], "most ads are missing at once"
    site.close()


def test_why_a_machine_is_drained_is_told_with_it(tmp_path: Path) -> None:
    site = WatchedPool(tmp_path)
    site.look()
    site.pool.publish("m1", "DrainReason", '"broken\\nfan"')
    site.pool.publish("m1", "Draining", "true")
    assert site.reported(10) == [("drained", "m1", "broken fan")]
    site.pool.publish("m1", "DrainReason", '"new fan"')
    assert site.reported(10) == [("drained", "m1", "new fan")]
    assert site.reported(10) == []
    site.pool.publish("m1", "Draining", "false")
    assert site.reported(10) == [("usable", "m1", None)]
    site.close()


class Aged:
    """A collector that says how long it has run."""

    def __init__(self, collector: Any, age_s: float) -> None:
        self._collector = collector
        self.age_s = age_s

    def query(self, kind: Any, *words: Any) -> Any:
        if kind == "collectors":
            return [{"StatsLifetime": self.age_s}]
        return self._collector.query(kind, *words)


def test_the_only_machine_is_closed_once_a_collector_that_was_not_restarted_lacks_it(
    tmp_path: Path,
) -> None:
    site = WatchedPool(tmp_path, machines=1, settings=WatchSettings(left_after_s=1000))
    aged = Aged(site.calls.collector, 500.0)
    site.calls = site.calls._replace(collector=aged, collector_ads="collectors")
    site.watch = site.new_watch()
    site.watch.start(None)
    site.look()
    site.pool.leave("m1")
    aged.age_s = 10.0
    assert site.reported(60) == [], "restarted"
    site.pool.join(Machine(name="m1", cluster="B"))
    aged.age_s = 70.0
    site.look(60)
    site.pool.leave("m1")
    aged.age_s = 130.0
    assert site.reported(60) == [("drained", "m1", None)]
    site.close()


def test_clusters_come_from_the_attribute_that_the_settings_name(tmp_path: Path) -> None:
    settings = WatchSettings(cluster_attribute="Room", machine_clusters={"m[34]": "annex"})
    site = WatchedPool(tmp_path, settings=settings)
    site.pool.publish("m1", "Room", '"cellar"')
    joined = {name: spec.cluster for kind, name, spec in site.reported() if kind == "joined"}
    assert joined == {"m1": "cellar", "m2": "default", "m3": "annex", "m4": "annex"}
    site.close()


def test_without_owneractive_the_state_owner_tells_that_somebody_sits_there() -> None:
    assert machine(slot(State="Owner")).owner
    assert not machine(slot(State="Owner", OwnerActive=False)).owner
    assert machine(slot(State="Claimed", OwnerActive=True)).owner


def test_slots_of_a_machine_are_told_as_one() -> None:
    before = machines_of(
        [slot("slot1@pc"), slot("slot2@pc", Cpus=3), slot("slot1@other")], set(), lambda n, a: "A"
    )
    assert before["pc"].cpus == 4
    after = machines_of(
        [slot("slot1@pc"), slot("slot2@pc", Cpus=3)], {"slot1@pc"}, lambda n, a: "A"
    )
    assert changes("pc", before["pc"], after["pc"]) == [], "one slot is still open"


def test_dynamic_slots_add_nothing_to_the_partitionable_one() -> None:
    ads = [
        slot("slot1@pc", PartitionableSlot=True, Cpus=2, TotalSlotCpus=8),
        slot("slot1_1@pc", DynamicSlot=True, Cpus=6, State="Claimed"),
    ]
    assert machine(*ads).cpus == 8


def test_of_an_ad_that_comes_twice_the_newest_counts() -> None:
    new, old = slot(MyCurrentTime=100), slot(MyCurrentTime=90, State="Owner")
    assert machine(new, old) == machine(old, new) == machine(new)


def test_a_change_older_than_the_last_look_has_the_time_of_the_ad_that_shows_it() -> None:
    [before] = machines_of([slot()], set(), lambda n, a: "A").values()
    later = slot(MyCurrentTime=400, OwnerActive=True)
    [after] = machines_of([later], set(), lambda n, a: "A").values()
    assert changes("pc", before, after) == [(400.0, events.OWNER_CAME, "pc", None)]


YEARS_S = 10 * 365.25 * 86_400.0


def is_due(site: WatchedPool, now_s: float) -> bool:
    """Return whether the queue would be asked for whole at this time."""
    watch = site.watch._points[site.point.name]
    assert isinstance(watch, LoggedAccessPoint)
    return watch._is_due(now_s)


def test_a_clock_that_was_years_ahead_hides_nothing_that_comes_after(site: WatchedPool) -> None:
    site.look()
    site.clock = lambda: site.pool.now_s + YEARS_S
    site.pool.owner_came("m2")
    ahead = site.look(after_s=20).events
    assert [event[1:3] for event in ahead] == [(events.OWNER_CAME, "m2")]
    site.clock = site.pool_clock
    site.pool.owner_went("m2")
    back = site.look(after_s=20)
    assert [event[1:3] for event in back.events] == [
        (events.OWNER_WENT, "m2"), (events.USABLE, "m2"),
    ]  # fmt: skip
    assert all(abs(event[0] - site.pool.now_s) < 60 for event in back.events)
    assert is_due(site, site.now() + site.settings.snapshot_s)


def test_the_queue_is_asked_again_after_the_clock_was_put_back(site: WatchedPool) -> None:
    site.clock = lambda: site.pool.now_s + YEARS_S
    site.look()
    site.clock = site.pool_clock
    assert is_due(site, site.now())


def test_a_machine_whose_own_clock_is_years_ahead_is_dated_by_ours() -> None:
    state = machine(slot(MyCurrentTime=4e9, LastHeardFrom=4e9, EnteredCurrentState=4e9))
    dated = _dated(state, 1_000.0)
    assert (dated.reported_s, dated.entered_s) == (1_000.0, 1_000.0)
    assert _dated(machine(slot()), 150.0).reported_s == 100.0


# -- looks at what has changed ----------------------------------------------------------------


class Asked:
    """A collector that notes what is asked of it, and how much it answers."""

    def __init__(self, collector: Any) -> None:
        self._collector = collector
        self.answered: list[int] = []

    def query(self, *words: Any) -> Any:
        ads = self._collector.query(*words)
        if words[2] != ["Name"]:
            self.answered.append(len(ads))
        return ads


def test_most_looks_ask_for_those_slots_alone_that_were_heard_of_since(tmp_path: Path) -> None:
    made = WatchedPool(tmp_path, machines=20, settings=WatchSettings(left_after_s=600))
    try:
        collector = Asked(made.calls.collector)
        calls: Any = made.calls._replace(collector=collector)
        watch = SlotWatch(calls, made.settings)
        now_s = made.pool.now_s
        assert len(watch.look(now_s)) >= 20
        made.pool.advance(now_s + 2)
        made.pool.owner_came("m3")
        made.pool.advance(now_s + 5)
        assert {e[1:3] for e in watch.look(now_s + 5)} == {(events.OWNER_CAME, "m3")}
        made.pool.leave("m7")
        made.pool.advance(now_s + 10)
        assert watch.look(now_s + 10) == []
        assert "m7" in watch.machines, "who left is seen in a look at all slots"
        # the second look has all that were heard of in the second of the first
        assert (collector.answered[0], collector.answered[2]) == (20, 1)
        reported = [e for n in range(11) for e in watch.look(now_s + 70 + 61 * n)]
        assert (events.LEFT, "m7") in {e[1:3] for e in reported}
        assert watch.save().keys() == watch.machines.keys()
        again = SlotWatch(made.calls, made.settings)
        again.restore(watch.save())
        assert again.machines == watch.machines
    finally:
        made.close()


def test_of_a_machine_with_several_slots_those_that_were_not_heard_of_still_count() -> None:
    slots: list[dict[str, Any]] = [
        slot(f"slot{n}@m1", Cpus=2, LastHeardFrom=100 + n) for n in (1, 2, 3)
    ]

    class Collector:
        def query(self, ad_type: Any, constraint: str = "", projection: Any = ()) -> Any:
            if projection == ["Name"]:
                return []
            since = constraint.partition("LastHeardFrom >= ")[2]
            return [ad for ad in slots if not since or ad["LastHeardFrom"] >= float(since)]

    calls: Any = PoolCalls(Collector(), None, KeyError, ())
    watch = SlotWatch(calls, WatchSettings())
    watch.look(1000.0)
    assert watch.machines["m1"].cpus == 6
    slots[1] |= {"State": "Owner", "LastHeardFrom": 110, "MyCurrentTime": 110}
    reported = watch.look(1005.0)
    assert [e[1:3] for e in reported] == [(events.OWNER_CAME, "m1")]
    assert watch.machines["m1"].cpus == 6

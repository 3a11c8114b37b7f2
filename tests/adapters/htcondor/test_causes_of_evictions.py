"""An event log gives no cause for an eviction; the machine's own state does, soon after."""

from typing import Any

from tests.adapters.htcondor.watched_pool import BEGIN_S, WatchedPool


def evicted(reported: list[tuple[str, str, Any]]) -> list[Any]:
    return [reason for kind, _, reason in reported if kind == "evicted"]


def machine_of(site: WatchedPool, job: str) -> str:
    [place] = [extra for kind, name, extra in site.reported(20) if (kind, name) == ("started", job)]
    return str(place[0])


def test_an_owner_who_returned_is_the_cause(site: WatchedPool) -> None:
    machine = machine_of(site, site.submit(run_s=1000))
    site.pool.owner_came(machine)
    assert evicted(site.reported(2)) == ["owner"]


def test_a_machine_that_is_being_emptied_is_the_cause(site: WatchedPool) -> None:
    machine = machine_of(site, site.submit(run_s=1000))
    site.pool.publish(machine, "Draining", "true")
    site.pool.publish(machine, "Start", "false")
    assert evicted(site.reported(2)) == ["drained"]


def test_a_cause_that_left_no_trace_stays_unknown(site: WatchedPool) -> None:
    machine = machine_of(site, site.submit(run_s=1000))
    site.pool.owner_came(machine)
    site.pool.owner_went(machine)
    assert evicted(site.reported(2)) == ["unknown"]


def test_the_owner_of_another_machine_is_no_cause(site: WatchedPool) -> None:
    machine = machine_of(site, site.submit(run_s=1000))
    other = next(name for name in site.names if name != machine)
    site.pool.owner_came(other)
    site.pool.publish(machine, "Start", "false")
    assert evicted(site.reported(2)) == ["unknown"]


def test_an_eviction_long_ago_says_nothing_of_who_is_there_now(site: WatchedPool) -> None:
    machine = machine_of(site, site.submit(run_s=1000))
    site.pool.owner_came(machine)
    site.pool.advance(BEGIN_S + 600)
    assert evicted(site.reported()) == ["unknown"]

"""Statistics that are saved, restored and read on the way end as those that never were."""

import random

import msgspec
import pytest

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.report import report
from outrider.engine.engine import Engine
from outrider.engine.state.site import Site
from outrider.model.events import POWER, Event
from outrider.simulation.generators.campus import generate_campus
from outrider.testing.fixtures import KeptDecisions
from tests.fixtures.plays import MAKERS, NoActuator, Play


def accounting_engine(play: Play) -> Engine:
    """An engine without policies for what happened on a campus."""
    site = Site(play.site.local_time, play.site.cluster_specs)
    return Engine(site, Accounting(site.local_time), [], NoActuator(), KeptDecisions(site))


def saved(engine: Engine) -> bytes:
    """Return the engine's state as bytes, because unknown energy is nan, which equals nothing."""
    return msgspec.msgpack.encode(engine.save())


@pytest.mark.parametrize("metered", [False, True])
def test_statistics_that_restart_end_as_those_that_never_did(metered: bool) -> None:
    chance = random.Random(5)
    play = Play(generate_campus(3, machines=40, clusters=4, weeks=2.0), [MAKERS["random_match"]()])
    told: list[Event] = []
    for event in play.told:
        told.append(event)
        if metered and event[0] > 0.0 and chance.random() < 0.1:
            told.append((event[0], POWER, chance.randrange(20), chance.uniform(20.0, 120.0)))
    spared, stopped = accounting_engine(play), accounting_engine(play)
    at = 0
    while at < len(told):
        until = at + chance.randrange(1, len(told) // 25)
        for engine in (spared, stopped):
            engine.feed(told[at:until])
        report(stopped.site, stopped.accounting)
        if chance.random() < 0.5:
            state = saved(stopped)
            stopped = accounting_engine(play)
            stopped.restore(msgspec.msgpack.decode(state))
        at = until
    assert saved(stopped) == saved(spared)

"""Jobs that arrive while no machine is free: recorded once, in whatever kind of pass."""

from typing import Any

import pytest

from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.decisions import DEFER, NO_MACHINE
from outrider.model.jobs import JobSpec
from outrider.model.modes import Discipline
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import ShortestJobFirst
from outrider_policies.rules.placements import Fifo
from outrider_policies.wsept import Wsept


@pytest.mark.parametrize("kind", [Fifo, ShortestJobFirst, Wsept])
def test_a_newcomer_is_told_that_no_machine_is_free_and_once(kind: Any) -> None:
    site = HandSite(kind)
    site.machines(1)
    site.submit(0)
    assert site.tick() == [0]
    for job in (1, 2):
        site.submit(job)
        assert site.tick(1.0) == []
        pending = site.runner.queue.waiting[job]
        assert (pending.action, pending.reason, pending.decided_s) == (DEFER, NO_MACHINE, site.now)
    told_n = len(site.decision_log.rows)
    site.tick(1.0)
    assert len(site.decision_log.rows) == told_n, "nothing has changed since"
    site.complete(0)
    assert site.tick(1.0) == [1]


@pytest.mark.parametrize("rule", ["first_fit", "strict", "easy", "easy_sjbf", "conservative"])
def test_a_pass_looks_for_places_once_for_all_jobs_that_ask_for_the_same(
    rule: Discipline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster's large nodes are free, and thousands wait for small ones."""
    site = HandSite(Fifo, rule)
    site.machines(*[4] * 20)
    site.tell(ev.ELIGIBLE, 0, ("small", (), True))
    for job in range(100):
        site.submit(job, eligible="small")
    site.submit(100, eligible="")
    asked: list[int] = []
    is_eligible = Site.is_eligible

    def counted(of: Site, spec: JobSpec, machine: int) -> bool:
        asked.append(machine)
        return is_eligible(of, spec, machine)

    monkeypatch.setattr(Site, "is_eligible", counted)
    assert site.tick() == [100]
    assert len(asked) <= 3 * 20, "and not for each job on each machine"
    site.tell(ev.ELIGIBLE, 0, ("small", (7,), True))
    assert site.tick(1.0) == [0, 1, 2, 3], "what was found out holds for one pass"

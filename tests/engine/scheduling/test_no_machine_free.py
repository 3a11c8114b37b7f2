"""Jobs that come while no machine is free: each is told so once, whatever pass its policy makes."""

from typing import Any

import pytest

from outrider.model.decisions import DEFER, NO_MACHINE
from outrider.testing.hand_site import HandSite
from outrider_policies.rules.fifo import Fifo
from outrider_policies.rules.sjf import ShortestJobFirst
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

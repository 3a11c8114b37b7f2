"""Jobs wider than any machine: they cannot start, and must not block all others."""

import pytest

from outrider.api import Policy
from outrider.model import events as ev
from outrider.model.modes import Discipline
from outrider.testing.fixtures import Asked, HandSite, make_workload, started_at
from outrider_policies.rules.placements import Fifo
from outrider_policies.sarsa import Sarsa


@pytest.mark.parametrize("rule", ["strict", "easy", "easy_sjbf", "conservative"])
@pytest.mark.parametrize("kind", [Fifo, Sarsa])
def test_nobody_waits_behind_a_job_that_no_machine_is_wide_enough_for(
    kind: type[Policy], rule: Discipline
) -> None:
    jobs = [Asked(0.0, 10.0, 8), Asked(1.0, 10.0, 4), Asked(2.0, 10.0, 1)]
    assert started_at(make_workload([4], jobs), kind, rule) == {"j1": 1.0, "j2": 11.0}


def test_it_starts_when_such_a_machine_joins() -> None:
    site = HandSite(Fifo, "strict")
    site.machines(4)
    site.submit(0, cpus=8)
    site.submit(1, cpus=4)
    assert site.tick() == [1]
    site.submit(2, cpus=4)
    site.machines(8)
    assert site.tick(1.0) == [0]
    site.tell(ev.LEFT, 1)
    site.complete(1)
    assert site.tick(1.0) == [2]

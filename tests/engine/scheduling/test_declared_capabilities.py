"""Calls of a policy follow from its declaration, never from which methods it overrides."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from outrider.api import (
    Decides,
    Learns,
    Listens,
    Move,
    Orders,
    Outcome,
    Plans,
    Policy,
    PolicySettings,
    Queue,
    Ranks,
    SiteView,
)
from outrider.engine import PolicyRunner
from outrider.engine.scheduling.deciding_policy import OrderedPass
from outrider.engine.scheduling.queue_passes import PlanPass, RankingPass
from outrider.testing.fixtures import chance
from outrider_policies.bandits.bandit import Bandit
from outrider_policies.planning.fuzzy_td import FuzzyTd
from outrider_policies.rules.orders import ShortestJobFirst
from outrider_policies.rules.placements import Fifo
from outrider_policies.sarsa import Sarsa
from outrider_policies.survival import Survival


def made(kind: type[Policy]) -> Policy:
    return kind(kind.settings_type(), chance(kind.name))


def seat_of(policy: Policy) -> PolicyRunner:
    return PolicyRunner(policy, True, 1800.0)


def logged(kind: type[Policy], method: str, calls: list[str]) -> type[Policy]:
    """Return a subclass whose method is wrapped by a decorator, as a profiler would do."""

    def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
        def outer(*given: Any) -> Any:
            calls.append(method)
            return inner(*given)

        return outer

    return type("Logged", (kind,), {method: wrap(getattr(kind, method))})


@pytest.mark.parametrize(
    ("kind", "decides"),
    [
        (Fifo, Decides.PER_JOB),
        (ShortestJobFirst, Decides.PER_JOB),
        (Bandit, Decides.PER_JOB),
        (Sarsa, Decides.RANKING),
        (FuzzyTd, Decides.PLAN),
    ],
)
def test_a_policy_declares_how_it_decides(kind: type[Policy], decides: Decides) -> None:
    assert kind.decides is decides


@pytest.mark.parametrize(
    ("kind", "method", "expected"),
    [
        (ShortestJobFirst, "order", OrderedPass),
        (Sarsa, "rank", RankingPass),
        (FuzzyTd, "plan", PlanPass),
    ],
)
def test_a_decorated_method_changes_neither_the_pass_nor_what_is_learned(
    kind: type[Policy], method: str, expected: type
) -> None:
    plain, decorated = seat_of(made(kind)), seat_of(made(logged(kind, method, [])))
    assert type(decorated.scheduling_pass) is type(plain.scheduling_pass) is expected
    assert decorated.learns == plain.learns
    assert decorated.subscribes == plain.subscribes


def test_what_a_class_merely_inherits_from_the_base_asks_for_nothing() -> None:
    class Same(Fifo):
        choose = Fifo.choose

    runner = seat_of(made(Same))
    assert not runner.learns
    assert runner.subscribes == frozenset()
    assert runner.predictions is None


def test_a_delegate_that_declares_the_same_is_asked_the_same() -> None:
    class Delegate(Ranks, Learns, Listens, Policy):
        name = "delegate"
        description = "for tests: passes everything on to sarsa"
        subscribes = Sarsa.subscribes

        def __init__(self, inner: Sarsa) -> None:
            super().__init__(inner.settings, inner.rng)
            self.inner = inner

        def rank(self, queue: Queue, view: SiteView) -> Any:
            return self.inner.rank(queue, view)

        def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
            return self.inner.observe(outcome, view, on_policy)

        def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
            self.inner.on_machine_event(kind, machine, view)

    inner = made(Sarsa)
    assert isinstance(inner, Sarsa)
    plain, wrapped = seat_of(inner), seat_of(Delegate(inner))
    assert type(wrapped.scheduling_pass) is type(plain.scheduling_pass)
    assert (wrapped.learns, wrapped.subscribes) == (plain.learns, plain.subscribes)


def test_survival_is_asked_for_predictions_because_it_says_that_it_predicts() -> None:
    assert seat_of(made(Survival)).predictions is not None


def test_a_method_without_its_declaration_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match=r'Sorted defines "rank" and does not declare Ranks'):

        class Sorted(Policy):
            def rank(self, queue: Queue, view: SiteView) -> Any:
                return np.zeros(len(queue.jobs))


def test_a_base_after_policy_is_refused_because_its_declaration_would_be_hidden() -> None:
    with pytest.raises(
        TypeError, match=r"Late.decides is Decides.PER_JOB, its bases declare .*PLAN"
    ):

        class Late(Policy, Plans):
            def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
                return ()


def test_to_rank_and_to_plan_at_once_is_refused() -> None:
    with pytest.raises(TypeError, match="declared to rank and to plan; expected one"):

        class Both(Ranks, Plans, Policy):
            pass


def test_a_class_that_was_refused_changes_nothing_for_others() -> None:
    with pytest.raises(TypeError) as refused:

        class Both(Ranks, Plans, Policy):
            def rank(self, queue: Queue, view: SiteView) -> Any:
                return np.zeros(len(queue.jobs))

    class Shortest(Ranks, Policy):
        def rank(self, queue: Queue, view: SiteView) -> Any:
            return queue.estimate_s

    assert not issubclass(Shortest, Plans)
    assert "Both" in str(refused.value)  # it is still held on to, as by a notebook


def test_a_declaration_without_its_method_cannot_be_made_into_a_policy() -> None:
    class Unfinished(Orders, Policy):
        name = "unfinished"

    with pytest.raises(TypeError, match=r"abstract method '?order"):
        Unfinished(PolicySettings(), chance("unfinished"))  # type: ignore[abstract]

"""Conduct of every planning policy: no foresight, no randomness, no loss over a restart."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from outrider.api import Job, Learns, Listens, Move, Outcome, Plans, Policy, Queue, SiteView
from outrider.formats.workload import Workload
from outrider.simulation.generators.grids.workloads import vengerov_grid
from outrider.testing.fixtures import LINEAR, Asked, Done, chance, made, on_one_machine, played
from outrider_policies.planning.baselines import Aggressive, Replan
from outrider_policies.planning.fuzzy_td import FuzzyTd

SPAN_S = 800.0
CUT_S = 400.0

KINDS: list[tuple[type[Policy], dict[str, Any]]] = [
    (FuzzyTd, {}),
    (FuzzyTd, {"inputs": 3, "update": "every_round"}),
    (FuzzyTd, {"skip_hopeless": True, "weigh_replan": True}),
    (Aggressive, {}),
    (Replan, {}),
]
every_policy = pytest.mark.parametrize(("kind", "settings"), KINDS)


def busy(seed: int = 1) -> Workload:
    return vengerov_grid(0.2, seed, steps="continuous", length_s=SPAN_S)


def act(policy: Policy, workload: Workload) -> Done:
    return played(policy, workload, until_s=SPAN_S)


@every_policy
def test_the_same_arrivals_give_the_same_decisions(
    kind: type[Policy], settings: dict[str, Any]
) -> None:
    first = act(made(kind, **settings), busy())
    assert act(made(kind, **settings), busy()).rows == first.rows
    assert first.report["jobs"]["completed"] > 80


@every_policy
def test_it_does_not_know_what_comes(kind: type[Policy], settings: dict[str, Any]) -> None:
    plain, other = busy(), busy()
    later = other.submit_s >= CUT_S
    other.run_s = np.where(later, other.run_s * 9.0, other.run_s)
    other.estimate_s = other.run_s.copy()
    one, two = (act(made(kind, **settings), workload).rows for workload in (plain, other))
    assert [row for row in one if row[0] < CUT_S] == [row for row in two if row[0] < CUT_S]
    assert one != two


class Restarted(Plans, Learns, Listens, Policy):
    """Hands everything on to a policy, which is replaced by its restored copy in the middle."""

    name = "restarted"
    description = "for tests: a policy that is restarted"

    inner: Any

    def __init__(self, kind: type[Policy], settings: dict[str, Any]) -> None:
        super().__init__(self.settings_type(), chance(kind.name))
        self._kind, self._settings = kind, settings
        self.inner = made(kind, **settings)
        self.restarts = 0

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        if view.now >= CUT_S and not self.restarts:
            memory = msgspec.msgpack.encode(self.inner.save(view))
            self.inner = made(self._kind, **self._settings)
            self.inner.restore(msgspec.msgpack.decode(memory), view)
            self.restarts += 1
        moves: Iterable[Move] = self.inner.plan(queue, view)
        return moves

    def group_key(self, job: Job, view: SiteView) -> Hashable:
        key: Hashable = self.inner.group_key(job, view)
        return key

    def on_enqueue(self, job: Job, view: SiteView) -> None:
        self.inner.on_enqueue(job, view)

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        self.inner.on_machine_event(kind, machine, view)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        rewards: Sequence[float] = self.inner.observe(outcome, view, on_policy)
        return rewards


@every_policy
def test_a_restart_changes_nothing(kind: type[Policy], settings: dict[str, Any]) -> None:
    restarted = Restarted(kind, settings)
    rows = act(restarted, busy()).rows
    assert restarted.restarts == 1
    assert rows == act(made(kind, **settings), busy()).rows


def test_what_was_learned_with_other_inputs_is_refused() -> None:
    memories: list[dict[str, Any]] = []

    class Saving(FuzzyTd):
        def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
            memories[:] = [self.save(view)]
            if view.now > CUT_S:
                with pytest.raises(ValueError, match="saved with 32 rules, not 8"):
                    made(FuzzyTd, inputs=3).restore(memories[0], view)
            return super().rearrange(queue, view)

    act(made(Saving), busy())
    assert len(memories[0]["values"]["grid"]["outputs"]) == 32


@every_policy
def test_jobs_of_unknown_length_are_planned_by_those_seen(
    kind: type[Policy], settings: dict[str, Any]
) -> None:
    workload = busy()
    workload.estimate_s = np.full(len(workload.run_s), np.nan)
    done = played(made(kind, assumed_s=20.0, **settings), workload)
    assert done.report["jobs"]["completed"] > 80


@every_policy
def test_it_explains_waiting_and_running_jobs_in_one_sentence(
    kind: type[Policy], settings: dict[str, Any]
) -> None:
    told: list[str] = []

    class Explained(kind):  # type: ignore[misc, valid-type]
        def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
            moves = list(super().plan(queue, view))
            told.extend(self.explain(job, view) for job in [*queue.jobs, *view.running])
            return moves

    act(made(Explained, **settings), busy())
    assert any(text.startswith("it runs on") for text in told)
    assert any(text.startswith("it waits for") for text in told)
    assert any(text.startswith("it was preempted and waits") for text in told)
    assert all("\n" not in text and not text.endswith(".") for text in told)


def test_a_learned_decision_shows_the_values_it_compared() -> None:
    seen: list[dict[str, float]] = []

    class Watched(FuzzyTd):
        def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
            moves = list(super().plan(queue, view))
            seen.extend(move.scores for move in moves if move.scores)
            return moves

    act(made(Watched), busy())
    assert any("forced" in scores for scores in seen)
    assert any("shrunk" in scores for scores in seen)
    for scores in seen:
        taken = max(value for name, value in scores.items() if name != "leave")
        assert taken > scores["leave"], f"a state of less value was chosen: {scores}"


def test_equal_densities_do_not_take_turns_for_ever() -> None:
    twins = [Asked(0.0, 10.0, 8) for _ in range(4)]
    done = on_one_machine(made(Replan), 8, *twins, utilities=LINEAR)
    assert len(done.rows) < 40, "jobs of equal density pushed each other out again and again"

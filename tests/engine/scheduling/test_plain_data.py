"""Plain data as the only state a policy may return; refused in the method that returned it."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from outrider.api import Choice, Groups, Job, Learns, Outcome, Policy, SiteView
from outrider.engine.scheduling.guarded_policy import check_key, check_saved, check_scores
from outrider.engine.scheduling.policy_runner import save_runner
from outrider.model import events as ev
from outrider.model.errors import PolicyError
from outrider.testing import NotConforming, check_policy
from outrider.testing.fixtures import HandSite


class Keyed(Learns, Policy):
    """Learns nothing, by keys of one's choice."""

    name = "keyed"
    description = "for tests: any free machine"
    api_version = 1
    key: Any = 1

    def __init__(self, settings: Any, rng: Any) -> None:
        super().__init__(settings, rng)
        self.saved: Any = {}

    def group_key(self, job: Job, view: SiteView) -> Hashable:
        return self.key  # type: ignore[no-any-return]

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(view.draw(self.rng), "any")

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        return ()

    def save(self, view: SiteView) -> dict[str, Any]:
        return self.saved  # type: ignore[no-any-return]


class Grouped(Groups, Keyed):
    """Groups by them, too."""

    name = "grouped"

    def evaluate_group(self, key: Hashable, view: SiteView) -> Any:
        return None


def started(kind: type[Keyed], key: Any) -> HandSite:
    """One job starts on one machine under a policy that gives this key."""
    hand = HandSite(kind)
    hand.policy.key = key
    hand.machines(1)
    hand.submit(0)
    hand.tick()
    return hand


class Asked(NamedTuple):
    """A key with names."""

    cpus: int
    vo: str


@pytest.mark.parametrize("key", [None, True, 3, 0.5, "lab", (), ("a", (1, None)), Asked(2, "vo")])
def test_plain_keys_are_taken(key: Hashable) -> None:
    check_key(key)
    started(Grouped, key).tell(ev.COMPLETED, 0)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (frozenset({1}), r"group_key returned frozenset\(\{1\}\) of type frozenset; expected"),
        (("a", np.int64(2)), r"which holds .*2.* of type numpy.int64; expected None, a bool"),
        (b"lab", "group_key returned b'lab' of type bytes"),
    ],
)
def test_a_key_that_would_not_come_back_from_a_snapshot_is_refused(key: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=f'policy "keyed" failed: TypeError: .*{said}'):
        started(Keyed, key)


def test_a_key_that_cannot_be_looked_up_is_refused_by_the_method_that_gave_it() -> None:
    with pytest.raises(PolicyError, match=r"group_key returned \{1\} of type set; expected"):
        started(Grouped, {1})


def test_an_error_of_the_evaluation_itself_is_not_blamed_on_the_key() -> None:
    class Failing(Grouped):
        def evaluate_group(self, key: Hashable, view: SiteView) -> Any:
            raise TypeError("a fault of its own")

    with pytest.raises(PolicyError, match="TypeError: a fault of its own"):
        started(Failing, 1)


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        ({"arms": [0.5, np.float64(1.5)]}, r"type numpy.float64 at \['arms'\]\[1\]; expected"),
        ({"hosts": {"a": object()}}, r"of type object at \['hosts'\]\['a'\]"),
        ({"runs": 2**70}, "save returned"),
        ([1, 2], r"save returned \[1, 2\] of type list; expected a dict"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_its_place(saved: Any, said: str) -> None:
    hand = started(Keyed, 1)
    hand.policy.saved = saved
    with pytest.raises(PolicyError, match=f'policy "keyed" failed: .*{said}'):
        save_runner(hand.runner, hand.site)


def test_plain_data_is_saved() -> None:
    check_saved({"arms": [[0.5, 1], None, True], "names": {"a": 1}, 7: "x"})


def test_scores_that_no_ledger_could_hold_are_refused() -> None:
    check_scores({"queue": 0.5, "c0": 1}, "choose")
    with pytest.raises(TypeError, match=r"choose returned scores with the key 3 of type int"):
        check_scores({3: 0.5}, "choose")
    with pytest.raises(
        TypeError, match=r"plan returned as score of 'c0' .*numpy.float64; expected"
    ):
        check_scores({"c0": np.float64(0.5)}, "plan")


def test_the_conformance_suite_finds_an_odd_key() -> None:
    class Odd(Keyed):
        key = frozenset({"lab"})

    with pytest.raises(NotConforming, match="group_key returned frozenset"):
        check_policy(Odd)

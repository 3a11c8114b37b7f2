"""`Policy[MySettings]`: the record is named once, and is what the policy is built from."""

from typing import Generic, TypeVar

import pytest

from outrider.api import Choice, Job, Policy, PolicySettings, SiteView
from outrider.plugins.finding import make_policy
from outrider.testing.fixtures import chance
from outrider_policies.bandits.bandit import Bandit, BanditSettings
from outrider_policies.planning.fuzzy_td import FuzzyTd
from outrider_policies.planning.fuzzy_td.policy import FuzzyTdSettings


class WarmSettings(PolicySettings, frozen=True):
    """Settings with one field."""

    most_w: float = 100.0


class WarmerSettings(WarmSettings, frozen=True):
    """Settings with one more field."""

    least_w: float = 10.0


T = TypeVar("T", bound=WarmSettings)
U = TypeVar("U")


class Warm(Policy[T], Generic[U, T]):
    """Leaves its settings to those who derive from it."""


def test_the_record_in_the_brackets_is_the_settings_type() -> None:
    class Cold(Policy[WarmSettings]):
        name = "cold"

    assert Cold.settings_type is WarmSettings
    made = Cold(WarmSettings(most_w=5.0), chance("cold"))
    assert made.settings.most_w == 5.0


def test_without_brackets_there_are_no_settings() -> None:
    class Plain(Policy):
        name = "plain"

    assert Plain.settings_type is PolicySettings


def test_the_record_is_found_through_generic_bases() -> None:
    class Between(Warm[int, T]):
        """Passes it on once more."""

    class Leaf(Between[WarmerSettings]):
        name = "leaf"

    assert Warm.settings_type is Between.settings_type is PolicySettings
    assert Leaf.settings_type is WarmerSettings
    assert Bandit.settings_type is BanditSettings
    assert FuzzyTd.settings_type is FuzzyTdSettings


def test_a_variant_keeps_the_settings_of_what_it_derives_from() -> None:
    class Variant(Bandit):
        name = "variant"

    assert Variant.settings_type is BanditSettings


def test_a_policy_that_is_made_by_name_gets_its_record() -> None:
    made = make_policy("bandit", {"epsilon": 0.25}, 0, "test")
    assert isinstance(made, Bandit)
    assert made.settings.epsilon == 0.25


def test_settings_that_are_no_record_are_refused_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match=r"class Odd: the settings are <class 'dict'>; expected"):

        class Odd(Policy[dict]):  # type: ignore[type-arg, type-var]
            pass


def test_two_different_declarations_are_refused() -> None:
    with pytest.raises(TypeError, match="settings_type is WarmerSettings, its bases name WarmSet"):

        class Two(Policy[WarmSettings]):
            settings_type = WarmerSettings


def test_settings_that_lack_what_inherited_methods_read_are_refused() -> None:
    class Base(Policy[WarmSettings]):
        def choose(self, job: Job, evaluation: object, view: SiteView, may_defer: bool) -> Choice:
            return Choice(0, f"{self.settings.most_w}")

    with pytest.raises(TypeError, match="PolicySettings is no WarmSettings, which the methods"):

        class Poorer(Base):
            settings_type = PolicySettings

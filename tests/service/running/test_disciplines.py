"""The daemon's queue discipline, and the source of that choice."""

from typing import Any

import pytest

from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.model.modes import DISCIPLINES
from outrider.plugins.finding import load_adapter
from outrider.service.config.loaded import LoadedConfig, Proposal, check_config, choose_discipline
from outrider.service.core.core import Core
from outrider.service.views.status import status
from outrider_adapters.logtail import LogtailAdapter
from outrider_adapters.mqtt import MqttAdapter

TWO = {
    "farm": {"type": "logtail", "paths": ["EventLog"]},
    "rooms": {"type": "mqtt", "host": "localhost"},
}


def loaded(adapters: dict[str, Any], **more: Any) -> LoadedConfig:
    """A configuration of these adapters."""
    return check_config({"mode": "shadow", "adapters": adapters, **more}, "test")


@pytest.mark.parametrize("kind", ["simulated", "mock_condor"])
def test_an_adapter_proposes_what_its_batch_system_does(kind: str) -> None:
    chosen = loaded({"pool": {"type": kind}}).discipline()
    assert load_adapter(kind).discipline == chosen.name == "first_fit"
    assert chosen.source == "adapter"
    assert chosen.why == f"adapter pool ({kind}) proposes first_fit"
    assert chosen.note == ""


def test_the_configuration_comes_before_what_an_adapter_proposes() -> None:
    chosen = loaded({"pool": {"type": "mock_condor"}}, discipline="easy").discipline()
    assert (chosen.name, chosen.source) == ("easy", "configuration")
    assert chosen.why == "configured; pool (mock_condor) proposes first_fit"


def test_without_a_proposal_everybody_may_pass() -> None:
    chosen = loaded({"farm": TWO["farm"]}).discipline()
    assert (chosen.name, chosen.source) == ("first_fit", "default")


def test_where_adapters_disagree_the_first_counts_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LogtailAdapter, "discipline", "conservative")
    monkeypatch.setattr(MqttAdapter, "discipline", "strict")
    chosen = loaded(TWO).discipline()
    assert (chosen.name, chosen.source) == ("conservative", "adapter")
    assert "farm (logtail) proposes conservative, rooms (mqtt) proposes strict" in chosen.note
    assert loaded(dict(reversed(TWO.items()))).discipline().name == "strict"
    assert loaded(TWO, discipline="easy").discipline().note == ""


def test_adapters_that_agree_need_no_note() -> None:
    both = {"a": Proposal("x", "easy"), "b": Proposal("y", "easy")}
    assert choose_discipline(None, both).note == ""


@pytest.mark.parametrize("name", DISCIPLINES)
def test_policies_and_status_have_the_discipline_in_force(name: str) -> None:
    core = Core(loaded({"farm": TWO["farm"]}, discipline=name, policies={"fifo": {}}), ())
    runners: list[PolicyRunner] = core.runners
    assert [runner.discipline for runner in runners] == [name]
    shown = status(core, {})
    assert shown["discipline"] == {"name": name, "source": "configuration", "why": "configured"}
    assert shown["policies"][0]["discipline"] == name

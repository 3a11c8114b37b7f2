"""States of jobs are named as the batch system names them, by what its adapter declares."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.api import Adapter, AdapterSettings
from outrider.plugins.finding import load_adapter, load_reader
from outrider.service.core.source_state import OURS, StateWords
from outrider_adapters.logtail.adapter import LogFollower
from outrider_adapters.logtail.settings import LogtailSettings

CONDOR = {"queued": "Idle", "running": "Running", "suspended": "Suspended", "held": "Held"}


def saying(label: str, words: Any) -> Adapter:
    """Return an adapter that declares these words."""
    adapter = Adapter(label, AdapterSettings())
    adapter.state_words = words
    return adapter


def named(*words: Any) -> Mapping[str, str]:
    adapters = {str(n): saying(str(n), one) for n, one in enumerate(words)}
    return StateWords(lambda: adapters).now()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], OURS),
        ([{}], OURS),
        ([{}, CONDOR, CONDOR], CONDOR),
        ([{"queued": "Idle"}], {**OURS, "queued": "Idle"}),
        ([CONDOR, {"queued": "PENDING"}], OURS),
    ],
)
def test_the_words_are_the_batch_system_s_where_there_is_one_and_else_ours(
    words: list[Any], told: Mapping[str, str]
) -> None:
    assert named(*words) == told


@pytest.mark.parametrize("wrong", [{"asleep": "Zzz"}, {"held": 5}, {"held": "x" * 41}, None, 7])
def test_what_an_adapter_declares_wrongly_is_logged_once_and_not_used(wrong: Any) -> None:
    words = StateWords(lambda: {"bad": saying("bad", wrong), "good": saying("good", CONDOR)})
    with capture_logs() as logs:
        assert [words.now(), words.now()] == [CONDOR, CONDOR]
    assert [(entry["event"], entry["adapter"]) for entry in logs] == [
        ("state_words_ignored", "bad")
    ]


@pytest.mark.parametrize(
    ("name", "queued"), [("slurm", "PENDING"), ("pbs", "Q"), ("mock_condor", "Idle")]
)
def test_adapters_of_batch_systems_have_words_of_theirs(name: str, queued: str) -> None:
    assert load_adapter(name).state_words["queued"] == queued


@pytest.mark.parametrize(("name", "running"), [("htcondor", "Running"), ("pbs", "R")])
def test_readers_of_their_logs_say_the_same(name: str, running: str) -> None:
    assert load_reader(name).state_words["running"] == running


def test_a_followed_log_says_whose_it_is_once_it_was_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    log.write_text(
        "000 (1.000.000) 2026-11-26 07:00:00.000Z Job submitted from host: <10.0.0.200:9618>\n...\n"
    )
    follower = LogFollower(LogtailSettings(paths=(str(log),)), time.time)
    assert follower.state_words == {}
    follower.start(None)
    follower.read()
    follower.close()
    assert follower.state_words == CONDOR

"""`outrider demo --mqtt`: a broker in the demo's process, to see messages immediately."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.running import COMMAND, WITHIN_S, outrider, shell
from tests.service.mqtt.listener import Listener

WORDS = ["demo", "--mqtt", "--machines", "20", "--weeks", "3", "--for", "60"]


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    """A demo that publishes to its own broker."""
    pytest.importorskip("amqtt", reason="the extra `broker` is not installed")
    with subprocess.Popen(
        [COMMAND, *WORDS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
    ) as running:  # fmt: skip
        yield running
        running.kill()


def test_the_demo_prints_its_page_then_its_broker_and_publishes_there(
    demo: subprocess.Popen[str],
) -> None:
    assert demo.stdout is not None
    assert demo.stdout.readline().startswith("Open http://127.0.0.1:")
    place, _, topics = demo.stdout.readline().partition(" topics ")
    assert topics == "outrider/demo/#\n"
    port = int(place.removeprefix("mqtt://127.0.0.1:"))
    with Listener(port, "outrider/demo/#") as listener:
        listener.wait_for_state("online", mode="shadow")
        first = listener.wait_for("a decision", lambda: listener.on("decisions"))
        assert first.fields["would"] is True
        demo.terminate()
        _, said = demo.communicate(timeout=WITHIN_S)  # it could not end if nobody read what it logs
    assert demo.returncode == 0, said
    assert "Traceback" not in said


def test_without_the_extra_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "amqtt.broker", None)
    done = outrider("demo", "--mqtt", "--for", "1")
    assert done.code == 2
    assert "pip install 'outrider[broker]'" in done.err
    assert done.out == ""


def test_a_demo_for_some_seconds_ends_by_itself_and_says_where_its_page_is() -> None:
    done = shell("demo", "--machines", "20", "--weeks", "1", "--for", "3")
    assert done.code == 0, done.err
    first, second, *_ = done.out.splitlines()
    assert first.startswith("Open http://127.0.0.1:")
    assert second == "On the page, from top to bottom:", "no broker was asked for"
    assert done.err == "", "log lines need --verbose"


def test_log_lines_of_a_demo_are_shown_where_that_is_asked() -> None:
    done = shell("demo", "--machines", "20", "--weeks", "1", "--for", "3", "--verbose")
    assert done.code == 0, done.err
    assert "daemon_started" in done.err
    assert "Traceback" not in done.err

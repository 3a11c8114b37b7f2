"""A fault in what is only shown ends nothing."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.process.app import report_status


def fail() -> str:
    raise ZeroDivisionError("nothing was seen yet")


class Line(ServiceManager):
    """A fake service manager that records its messages."""

    def __init__(self) -> None:
        super().__init__({})
        self.told: asyncio.Queue[str] = asyncio.Queue()

    def status(self, status: str) -> bool:
        self.told.put_nowait(status)
        return True


async def test_a_sentence_that_cannot_be_made_does_not_end_the_daemon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("outrider.service.process.app._STATUS_EVERY_S", 0.01)
    sentences: Iterator[Callable[[], str]] = iter([fail, lambda: "all is well"])

    class View:
        def sentence(self) -> str:
            return next(sentences)()

    line, view = Line(), View()
    telling = asyncio.create_task(report_status(line, _as_view(view)))
    assert await asyncio.wait_for(line.told.get(), 5) == "all is well"
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)
    assert "nothing was seen yet" in capsys.readouterr().out


def _as_view(view: Any) -> DaemonView:
    return view  # type: ignore[no-any-return]

"""Look-up of the name of a command's sender, also with a slow user database."""

import os
import pwd
import threading

import pytest

from outrider.service.commands.command import Sender, Senders


async def test_a_number_has_the_name_that_the_user_database_tells() -> None:
    here = pwd.getpwuid(os.getuid())
    senders = Senders()
    assert await senders.sender(here.pw_uid) == Sender(here.pw_uid, here.pw_name)
    assert await senders.sender(here.pw_uid) == Sender(here.pw_uid, here.pw_name), "and again"


@pytest.mark.parametrize("error", [KeyError("no such user"), OSError("no answer")])
async def test_a_number_that_nobody_has_is_a_sender_without_a_name(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(_: int) -> None:
        raise error

    monkeypatch.setattr(pwd, "getpwuid", fails)
    assert await Senders().sender(4_242) == Sender(4_242, "")


async def test_a_database_that_hangs_delays_one_command_for_a_moment_and_costs_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on, asked = threading.Event(), []

    def hangs(uid: int) -> pwd.struct_passwd:
        asked.append(uid)
        may_go_on.wait(10)
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", hangs)
    senders = Senders(within_s=0.05)
    assert await senders.sender(1) == Sender(1, "")
    assert await senders.sender(2) == Sender(2, "")
    assert asked == [1]
    may_go_on.set()

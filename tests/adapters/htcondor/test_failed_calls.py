"""Causes of failed calls to a pool, from messages that a real HTCondor 24 wrote."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")

from outrider_adapters.htcondor.failed_calls import Tokens, cause_of, tokens_here
from outrider_adapters.htcondor.pool_calls import HTCondorException
from outrider_adapters.htcondor.real_pool import HTCondorAdapter
from outrider_adapters.htcondor.settings import HTCondorSettings

FAILED = HTCondorException("Failed communication with collector.")
AUTHENTICATE = "ERROR: AUTHENTICATE:1003:Failed to authenticate with any method"
BY_TOKEN = f"{AUTHENTICATE}|AUTHENTICATE:1004:Failed to authenticate using IDTOKENS"
NONE = Tokens("/home/ann/.condor/tokens.d")
ONE = Tokens("/t", ("/t/pool",))
CONNECT = "11/29/26 08:35:48 attempt to connect to <192.0.2.7:9618> failed: {}.\n"


@pytest.mark.parametrize(
    ("messages", "tokens", "found", "fix"),
    [
        ("Can't resolve collector cm.test; skipping\n", NONE, "its name cm.test is not resolved",
         "getent hosts cm.test"),
        (CONNECT.format("Connection refused (connect errno = 111)"), NONE,
         "nothing listens at 192.0.2.7:9618 (connection refused)", "start HTCondor there"),
        (CONNECT.format("timed out after 10 seconds"), NONE, "192.0.2.7:9618 does not answer at",
         "firewall to TCP port 9618"),
        (CONNECT.format("Operation not permitted (connect errno = 1)"), NONE,
         "this process may not connect to 192.0.2.7:9618", "outrider install-service"),
        (CONNECT.format("No route to host (connect errno = 113)"), NONE, "cannot be reached",
         "route to 192.0.2.7:9618"),
        ("ERROR: SECMAN:2007:This service is running, but did not respond", NONE,
         "accepts the connection and does not answer", "CollectorLog"),
        ("IO: Incoming packet header unrecognized : 48 54 54 50 2f\nERROR: SECMAN:2007:", NONE,
         "a program answers there that is not HTCondor", "correct the port"),
        (BY_TOKEN, NONE, "it wants a token, and there is none in /home/ann/.condor/tokens.d",
         "condor_token_create"),
        (BY_TOKEN, Tokens("/t", (), ("/t/pool",)), "this user may not read /t/pool", "mode 0600"),
        (BY_TOKEN, ONE, "it refuses the token of this user (/t/pool)", "condor_token_create"),
        (f"{AUTHENTICATE}|AUTHENTICATE:1004:Failed to authenticate using FS", ONE,
         "no token was offered (only FS)", "add IDTOKENS"),
        ('ERROR: SECMAN:2010:Received "DENIED" from server for user o@p.test using method IDTOKENS',
         ONE, "it denies the user o@p.test, known by IDTOKENS", "add o@p.test to ALLOW_READ"),
    ],
)  # fmt: skip
def test_each_cause_is_named_with_one_fix(
    messages: str, tokens: Tokens, found: str, fix: str
) -> None:
    cause = cause_of(FAILED, messages, tokens)
    assert cause is not None
    assert found in cause.found
    assert fix in cause.fix


def test_a_process_without_a_pool_is_said_to_have_none() -> None:
    cause = cause_of(HTCondorException("Unable to determine collector host."), "", NONE)
    assert cause is not None
    assert "no pool is configured" in cause.found


def test_what_no_message_names_has_no_cause() -> None:
    assert cause_of(FAILED, "something else\n", NONE) is None


def test_tokens_are_those_of_this_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"SEC_TOKEN_DIRECTORY": str(tmp_path), "SEC_TOKEN_SYSTEM_DIRECTORY": ""}
    bindings = "outrider_adapters.htcondor.failed_calls.htcondor2"
    monkeypatch.setattr(bindings, SimpleNamespace(param=params))
    assert tokens_here() == Tokens(str(tmp_path))
    (tmp_path / "pool").write_text("x")
    assert tokens_here().readable == (str(tmp_path / "pool"),)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert tokens_here() == Tokens(str(tmp_path), (), (str(tmp_path / "pool"),))


@contextmanager
def deaf() -> Iterator[str]:
    """An address at which connections are neither accepted nor refused, as behind a firewall."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        try:
            yield f"127.0.0.1:{address[1]}"
        finally:
            for one in waiting:
                one.close()


def test_a_silent_address_an_empty_one_and_a_name_are_told_apart() -> None:
    with deaf() as address:
        found = {
            at: HTCondorAdapter("p", HTCondorSettings(collector=at, answer_within_s=1)).diagnose()
            for at in (address, "127.0.0.1:9", "no-such-host.invalid")
        }
    [silent], [refused], [unknown] = found.values()
    assert "does not answer at all (timed out" in silent[2]
    assert "(connection refused)" in refused[2]
    assert "no-such-host.invalid is not resolved" in unknown[2]
    assert all(what == "collector" and state == "fail" for what, state, *_ in
               (silent, refused, unknown))  # fmt: skip

"""`outrider doctor` beside a real pool that wants to know who reads: each cause, with its fix."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import Done, shell
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.test_htcondor_adapter import CLIENT
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

IDENTITY = "outrider@pool.test"
SETTINGS = """
SEC_READ_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
SEC_CLIENT_AUTHENTICATION_METHODS = FS, IDTOKENS
"""


class Examined:
    """A pool that is read with a token, and a client of it outside.

    Args:
        pool: the pool.
        folder: of the client's configuration, tokens and state.
    """

    def __init__(self, pool: HTCondorPool, folder: Path) -> None:
        self.pool = pool
        self.config = folder / "outrider.toml"
        self.tokens = folder / "tokens"
        self.tokens.mkdir(mode=0o700)
        condor = folder / "condor_config"
        condor.write_text(
            f"{CLIENT}COLLECTOR_HOST = {pool.collector}\nSEC_TOKEN_DIRECTORY = {self.tokens}\n"
            "SEC_TOKEN_SYSTEM_DIRECTORY =\nSEC_CLIENT_AUTHENTICATION_METHODS = FS, IDTOKENS\n"
        )
        self.config.write_text(
            f'state_dir = "{folder / "state"}"\nlisten = "127.0.0.1:0"\n'
            '[adapters.pool]\ntype = "htcondor"\nanswer_within_s = 5\n'
        )
        self.environ = {"CONDOR_CONFIG": str(condor)}
        self.good = pool.run(
            "root", "condor_token_create", "-identity", IDENTITY, "-authz", "READ"
        ).strip()

    def token(self, text: str) -> None:
        """Write the client's only token."""
        file = self.tokens / "pool"
        file.write_text(f"{text}\n")
        file.chmod(0o600)

    def doctor(self) -> Done:
        """Run the doctor with a fresh pair of client and configuration."""
        return shell("doctor", "--config", self.config, **self.environ)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examined]:
    """A pool and a client that has no token yet."""
    require_peer("HTCondor pool", missing_reason())
    with HTCondorPool(tmp_path_factory.mktemp("pool") / "run", 1, SETTINGS) as pool:
        yield Examined(pool, tmp_path_factory.mktemp("client"))


def signed_with_another_key(token: str) -> str:
    """Return a token of the same claims that another pool could have signed."""
    signed = token.rpartition(".")[0]
    signature = hmac.new(b"another pool", signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_without_a_token_with_a_wrong_one_and_with_a_right_one(beside: Examined) -> None:
    none = beside.doctor()
    assert none.code == 1
    assert f"it wants a token, and there is none in {beside.tokens}" in none.out
    assert "fix: make one at the central manager: condor_token_create" in none.out
    beside.token(signed_with_another_key(beside.good))
    wrong = beside.doctor()
    assert (wrong.code, "it refuses the token of this user" in wrong.out) == (1, True), wrong
    beside.token(beside.good)
    right = beside.doctor()
    assert right.code == 0, right
    assert "ok    adapter pool: collector: knows 1 slots" in right.out
    assert "ok    adapter pool: negotiator: answers; its last known cycle ended" in right.out


def test_a_user_whom_the_pool_denies_is_named(beside: Examined) -> None:
    beside.token(beside.good)
    more = beside.pool.run_dir / "config" / "99-deny.config"
    more.write_text(f"DENY_READ = {IDENTITY}\n")
    try:
        beside.pool.run("root", "condor_reconfig")
        beside.pool.wait_until(
            "denial", lambda: f"it denies the user {IDENTITY}" in beside.doctor().out
        )
    finally:
        more.unlink()
        beside.pool.run("root", "condor_reconfig")
    beside.pool.wait_until("admission", lambda: beside.doctor().code == 0)


def test_a_negotiator_that_was_stopped_fails(beside: Examined) -> None:
    beside.token(beside.good)
    beside.pool.run("root", "condor_off", "-daemon", "negotiator")
    try:
        beside.pool.wait_until("silence", lambda: beside.doctor().code == 1)
        stopped = beside.doctor().out
    finally:
        beside.pool.run("root", "condor_on", "-daemon", "negotiator")
    assert "fail  adapter pool: negotiator: the collector knows none" in stopped
    assert "condor_on -daemon negotiator" in stopped


def test_the_daemons_own_word_counts_where_one_runs(beside: Examined) -> None:
    """A daemon without a token is down, and up again once it has one."""
    (beside.tokens / "pool").unlink(missing_ok=True)
    with DaemonProcess(beside.config, beside.environ) as daemon:
        daemon.wait_until("its cause", lambda s: "wants a token" in s["adapters"][0]["problem"])
        down = beside.doctor()
        assert down.code == 1
        assert "fail  adapter pool: the running daemon: down" in down.out
        assert "it wants a token, and there is none in" in down.out
        beside.token(beside.good)
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 1)
        up = beside.doctor()
    assert up.code == 0, up
    assert "ok    adapter pool: the running daemon: up" in up.out

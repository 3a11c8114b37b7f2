"""Clients of a daemon: tokens, certificates, and readable errors."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.certificates import Pair, self_signed
from tests.cli.running import outrider
from tests.service.web.small_answers import STATUS

TOKEN = "0123456789abcdef0123456789abcdef"
ASKING = pytest.mark.parametrize("words", [("status",), ("explain", "1.0")], ids=lambda w: w[0])


class Guarded(BaseHTTPRequestHandler):
    """A daemon that wants its token, as far as a client sees."""

    def do_GET(self) -> None:
        let_in = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        body = json.dumps(STATUS if let_in else {"error": "a token is required"}).encode()
        self.send_response(200 if let_in else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        """Write no access log."""


class Dripping(Guarded):
    """Sends a byte now and then, and never ends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(300):
            try:
                self.wfile.write(b" ")
            except OSError:
                return
            time.sleep(0.1)


class Elsewhere(Guarded):
    """Server that redirects its clients, with their tokens, to another."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.target)
        self.end_headers()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], pair: Pair | None = None) -> Iterator[int]:
    """The port of a server on loopback that ends with the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client hangs up
        if pair is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*pair)
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A file that holds a token."""
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


@ASKING
def test_a_refused_connection_is_named(words: tuple[str, ...]) -> None:
    done = outrider(*words, "--url", "http://127.0.0.1:9")
    assert done.code == 3
    assert "http://127.0.0.1:9: no daemon answers: connection refused" in done.err


@ASKING
def test_a_missing_token_is_named_and_its_option(words: tuple[str, ...]) -> None:
    with serving(Guarded) as port:
        done = outrider(*words, "--url", f"http://127.0.0.1:{port}")
    assert done.code == 3
    assert "access denied (401): a token is required; use --token-file FILE" in done.err


def test_the_token_of_a_file_is_sent(token_file: Path) -> None:
    with serving(Guarded) as port:
        url = f"http://127.0.0.1:{port}"
        assert outrider("status", "--url", url, "--token-file", token_file).code == 0


def test_a_token_is_not_sent_where_everybody_can_read_it(token_file: Path) -> None:
    done = outrider("status", "--url", "http://192.0.2.1:9690", "--token-file", token_file)
    assert done.code == 2
    assert "use https://" in done.err


def test_a_token_does_not_follow_a_redirect(token_file: Path) -> None:
    with serving(Guarded) as other:

        class Sends(Elsewhere):
            target = f"http://127.0.0.1:{other}/api/v1/status"

        with serving(Sends) as port:
            url = f"http://127.0.0.1:{port}"
            done = outrider("status", "--url", url, "--token-file", token_file)
    assert done.code == 3


@ASKING
@pytest.mark.parametrize(
    ("names", "days", "trusted", "told"),
    [
        ("DNS:localhost,IP:127.0.0.1", 2, False, "not trusted"),
        ("DNS:localhost,IP:127.0.0.1", -1, True, "has expired"),
        ("DNS:other.example", 2, True, "is for another name"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_told(
    words: tuple[str, ...], names: str, days: int, trusted: bool, told: str, tmp_path: Path
) -> None:
    pair = self_signed(tmp_path / "tls", names, days)
    with serving(Guarded, pair) as port:
        ca = ["--ca", pair.cert] if trusted else []
        done = outrider(*words, "--url", f"https://localhost:{port}", *ca)
    assert done.code == 3
    assert "certificate" in done.err
    assert told in done.err
    assert "no daemon answers" not in done.err


def test_a_certificate_is_trusted_by_the_option(tmp_path: Path, token_file: Path) -> None:
    pair = self_signed(tmp_path / "tls")
    with serving(Guarded, pair) as port:
        options = ["--ca", pair.cert, "--token-file", token_file]
        assert outrider("status", "--url", f"https://localhost:{port}", *options).code == 0


def test_a_file_that_is_no_certificate_is_named(token_file: Path) -> None:
    done = outrider("status", "--url", "https://localhost:9", "--ca", token_file)
    assert done.code == 2
    assert f'"{token_file}": not a PEM file of certificates' in done.err


def test_tls_where_none_is_spoken_and_none_where_it_is(tmp_path: Path) -> None:
    with serving(Guarded) as port:
        done = outrider("status", "--url", f"https://localhost:{port}")
        assert (done.code, "answers, but without TLS" in done.err) == (3, True)
    with serving(Guarded, self_signed(tmp_path / "tls")) as port:
        done = outrider("status", "--url", f"http://localhost:{port}")
        assert (done.code, "over https://" in done.err) == (3, True), done.err


class DrippingHead(Guarded):
    """Begins an answer's head now and then, and never ends it."""

    def do_GET(self) -> None:
        for _ in range(300):
            try:
                self.wfile.write(b"H")
            except OSError:
                return
            time.sleep(0.1)


@pytest.mark.parametrize("drips", [Dripping, DrippingHead])
def test_an_answer_that_never_ends_is_given_up(
    drips: type[Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider.cli.http_client.get.__defaults__", (1.0,))
    with serving(drips) as port:
        began = time.monotonic()
        done = outrider("status", "--url", f"http://127.0.0.1:{port}")
    assert (done.code, "within 1 s" in done.err) == (3, True), done.err
    assert time.monotonic() - began < 20.0


def test_silence_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outrider.cli.http_client.get.__defaults__", (0.5,))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = outrider("status", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert (done.code, "no daemon answers within" in done.err) == (3, True), done.err


def test_json_of_another_service_is_not_taken_for_a_status() -> None:
    class Other(Guarded):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "UP"}')

    with serving(Other) as port:
        done = outrider("status", "--url", f"http://127.0.0.1:{port}")
    assert (done.code, "is not an Outrider server" in done.err) == (3, True), done.err


@pytest.fixture
def other_sites_ledger(tmp_path: Path, campus: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A journal in the default place of this host; returns the name of a job in it."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    file = tmp_path / "journal.sqlite"
    outrider("replay", campus, "--policy", "bandit", "--until", 200_000, "--ledger", file)
    job: str = json.loads(outrider("ledger", file, "--export", "jsonl").out.splitlines()[0])["job"]
    return job


def test_a_named_daemon_that_is_away_is_no_reason_to_read_the_ledger_here(
    other_sites_ledger: str,
) -> None:
    done = outrider("explain", other_sites_ledger, "--url", "http://127.0.0.1:9")
    assert done.code == 3
    assert "refused" in done.err
    assert done.out == ""


def test_our_own_ledger_is_read_with_a_word_of_why(
    other_sites_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider.cli.daemon.DaemonAddress.__new__.__defaults__",
                        ("http://127.0.0.1:9", None, None, None, False, None))  # fmt: skip
    done = outrider("explain", other_sites_ledger, other_sites_ledger)
    assert done.code == 0
    assert done.err.count("connection refused") == 1
    assert "this is from its journal" in done.err

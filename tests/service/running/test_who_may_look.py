"""Access of other users of the host over socket and port, and to users' names."""

import grp
import json
import os
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from outrider.cli.daemon import DaemonAddress
from tests.cli.running import outrider
from tests.free_port import free_port
from tests.service.running.other_users import NOBODY, as_user, get, need_root, open_folder
from tests.service.running.process import OUTRIDER
from tests.service.running.small_site import SmallSite
from tests.service.running.test_pseudonyms import NAMES, submitted_by

GROUP = grp.getgrgid(os.getegid()).gr_name
"""The socket's group in these tests: a group that this host has."""
EVERYTHING = ("status", "jobs", "decisions", "explain/1.0", "machines", "utility")


def site_with_users(folder: Path, path: Path, more: str = "") -> SmallSite:
    """A site with two users, whose daemon has a socket."""
    head = f'socket = "{path}"\nsocket_group = "{GROUP}"\n{more}'
    site = SmallSite(folder, head=head)
    for job, name in enumerate(NAMES, 1):
        site.log.raw(submitted_by(job, name))
    return site


@pytest.fixture
def site(tmp_path: Path, path: Path) -> Iterator[SmallSite]:
    """A daemon that knows the jobs of two users."""
    site = site_with_users(tmp_path, path)
    with site.daemon as daemon:
        daemon.wait_until("both known", lambda s: s["jobs"]["queued"] == 2)
        yield site


class LookedAt(NamedTuple):
    """A daemon that tests look at and do not change, and its socket."""

    site: SmallSite
    path: Path


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LookedAt]:
    """A daemon that knows the jobs of two users: one for all tests that only look."""
    with open_folder() as folder:
        path = folder / "outrider.sock"
        site = site_with_users(tmp_path_factory.mktemp("looked at"), path)
        with site.daemon as daemon:
            daemon.wait_until("both known", lambda s: s["jobs"]["queued"] == 2)
            yield LookedAt(site, path)


def status_of(answer: bytes) -> int:
    return int(answer.split(maxsplit=2)[1])


def over_port(url: str, asked: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url + asked, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_all_users_may_connect_and_those_of_its_group_are_named(
    site: SmallSite, path: Path
) -> None:
    found = path.stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o666
    assert found.st_gid == os.getegid()
    site.daemon.stop()
    assert not path.exists(), "it goes with the daemon"


def test_our_own_user_sees_names_over_the_socket(looked_at: LookedAt) -> None:
    answer = get(looked_at.path)
    assert status_of(answer) == 200
    assert {row["user"] for row in json.loads(answer.partition(b"\r\n\r\n")[2])["jobs"]} == {*NAMES}


def test_other_users_are_shown_no_names(looked_at: LookedAt) -> None:
    need_root()
    for asked in (*(f"/api/v1/{part}" for part in EVERYTHING), "/metrics", "/"):
        answer = as_user(NOBODY, [NOBODY], lambda asked=asked: get(looked_at.path, asked))  # type: ignore[misc]
        assert status_of(answer) == 200, asked
        assert not any(name.encode() in answer for name in NAMES), asked


def test_where_all_clients_need_a_token_the_socket_is_for_its_group(
    tmp_path: Path, path: Path
) -> None:
    need_root()
    (tmp_path / "t").write_text("0123456789abcdef0123456789abcdef\n")
    site = site_with_users(tmp_path, path, f'token_file = "{tmp_path / "t"}"\n')
    with site.daemon:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert as_user(NOBODY, [NOBODY], lambda: get(path)) == b"PermissionError"
        path.chmod(0o666)  # credentials keep other users out, too
        answer = as_user(NOBODY, [NOBODY], lambda: get(path))
    assert status_of(answer) == 403
    assert b"user 65534 is not root" in answer
    assert not any(name.encode() in answer for name in NAMES)


@pytest.mark.parametrize("groups", [[0], [NOBODY, 0]], ids=["primary", "supplementary"])
def test_members_of_the_group_get_in(looked_at: LookedAt, groups: list[int]) -> None:
    need_root()
    answer = as_user(NOBODY, groups, lambda: get(looked_at.path))
    assert status_of(answer) == 200
    assert NAMES[0].encode() in answer


def test_another_page_gets_nothing_over_the_socket_either(looked_at: LookedAt) -> None:
    assert status_of(get(looked_at.path, host="evil.example")) == 421


def test_names_are_shown_over_the_port_to_nobody_without_the_token(looked_at: LookedAt) -> None:
    url = looked_at.site.daemon.url
    for asked in [*(f"/api/v1/{part}" for part in EVERYTHING), "/metrics", "/"]:
        status, text = over_port(url, asked)
        assert status == 200, asked
        for name in NAMES:
            assert name not in text, asked
    users = {row["user"] for row in json.loads(over_port(url, "/api/v1/jobs")[1])["jobs"]}
    assert len(users) == 2
    assert all(user.startswith("u-") for user in users)
    assert all(name not in looked_at.site.log_text() for name in NAMES)


def test_the_page_says_how_to_see_names(looked_at: LookedAt) -> None:
    shown = json.loads(over_port(looked_at.site.daemon.url, "/api/v1/status")[1])
    assert (shown["users"], shown["sign_in"]) == ("pseudonyms", False)
    assert "outrider token" in shown["users_hint"]


def made_token(site: SmallSite) -> str:
    done = outrider("token", "--config", site.config)
    assert done.code == 0, done
    file = site.state / "token"
    assert str(file) in done.out
    assert "mode 0600" in done.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text().strip()
    assert token not in done.out
    return token


def test_the_token_shows_names_once_the_daemon_has_read_it(site: SmallSite) -> None:
    url = site.daemon.url
    token = made_token(site)
    assert site.daemon.process is not None
    site.daemon.process.send_signal(signal.SIGHUP)
    site.daemon.wait_until("the token is known", lambda s: s["sign_in"])
    bearer = {"Authorization": f"Bearer {token}"}
    assert NAMES[0] in over_port(url, "/api/v1/jobs", **bearer)[1]
    assert json.loads(over_port(url, "/api/v1/status", **bearer)[1])["users"] == "names"
    status, text = over_port(url, "/api/v1/jobs")
    assert (status, NAMES[0] in text) == (200, False), "who sends none may still look"
    assert over_port(url, "/api/v1/jobs", Authorization="Bearer wrong-wrong-wrong")[0] == 401
    assert over_port(url, "/sign-in")[0] == 401
    assert over_port(url, "/sign-in", **bearer)[0] == 200, "it leads to the page"
    again = outrider("token", "--config", site.config)
    assert "which is kept" in again.out
    assert (site.state / "token").read_text().strip() == token


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST.:9690", 200), ("127.0.0.1:1", 200), ("[::1]:9690", 200),
        ("evil.example", 421), ("evil.example:9690", 421), ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421), ("192.0.2.7", 421), ("[::1", 421), ("localhost:x", 421),
        ("pool.example", 200), (socket.gethostname(), 200), (f"{socket.gethostname()}.evil", 421),
    ],
)  # fmt: skip
def test_the_name_that_is_asked_for_has_to_be_ours(
    named: SmallSite, host: str, status: int
) -> None:
    for asked in ("/", "/api/v1/jobs", "/healthz", "/metrics"):
        answered, text = over_port(named.daemon.url, asked, Host=host)
        assert answered == status, asked
        if status == 421:
            assert "host_names" in text


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallSite]:
    """A daemon with a host name besides its address."""
    site = SmallSite(tmp_path_factory.mktemp("named"), head='host_names = ["pool.example"]\n')
    with site.daemon:
        yield site


@pytest.mark.parametrize(
    ("setting", "over_socket", "over_tcp"), [("everybody", True, True), ("nobody", False, False)]
)
def test_the_setting_says_who_sees_names(
    tmp_path: Path, path: Path, setting: str, over_socket: bool, over_tcp: bool
) -> None:
    site = site_with_users(tmp_path, path, f'show_users = "{setting}"\n')
    with site.daemon as daemon:
        daemon.wait_until("both known", lambda s: s["jobs"]["queued"] == 2)
        assert (NAMES[0].encode() in get(path)) is over_socket
        assert (NAMES[0] in over_port(daemon.url, "/api/v1/jobs")[1]) is over_tcp


def test_a_socket_that_a_killed_daemon_left_is_replaced(site: SmallSite, path: Path) -> None:
    assert site.daemon.process is not None
    site.daemon.process.kill()
    site.daemon.process.wait()
    assert path.exists()
    site.daemon.start()
    assert status_of(get(path, "/healthz")) == 200


def refused(site: SmallSite) -> str:
    done = subprocess.run(
        [OUTRIDER, "run", "--config", site.config],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


def test_a_socket_or_file_of_somebody_else_is_left_alone(tmp_path: Path, path: Path) -> None:
    site = site_with_users(tmp_path, path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        assert "another process listens there" in refused(site)
        path.unlink()
    path.write_text("not yours\n")
    assert "the path is another file, not a socket" in refused(site)
    assert path.read_text() == "not yours\n"


def test_without_the_group_only_we_are_shown_names(tmp_path: Path, path: Path) -> None:
    need_root()
    site = site_with_users(tmp_path, path, "")
    site.config.write_text(site.config.read_text().replace(f'"{GROUP}"', '"no-such-group"'))
    with site.daemon as daemon:
        daemon.wait_until("both known", lambda s: s["jobs"]["queued"] == 2)
        assert NAMES[0].encode() in get(path)
        for groups in ([NOBODY], [NOBODY, 0]):
            answer = as_user(NOBODY, groups, lambda: get(path))
            assert (status_of(answer), NAMES[0].encode() in answer) == (200, False)


def test_commands_ask_the_socket_of_the_configuration(site: SmallSite, path: Path) -> None:
    explained: Any = outrider("explain", "1.0", "--config", site.config, "--json").json()
    assert explained["source"] == "daemon"
    assert outrider("status", "--url", f"unix:{path}", "--json").json()["users"] == "names"
    site.daemon.stop()
    done = outrider("status", "--url", f"unix:{path}")
    assert (done.code, "the socket does not exist" in done.err) == (3, True), done


def test_a_command_of_another_user_asks_the_port_and_says_so(
    tmp_path: Path, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    need_root()
    port = free_port()
    site = site_with_users(tmp_path, path)
    site.config.write_text(site.config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    address = DaemonAddress(f"http://127.0.0.1:{port}", socket=path)

    def ask() -> bytes:
        return str(address.ask("/api/v1/status")["users"]).encode()

    with site.daemon:
        path.chmod(0o600)
        assert as_user(NOBODY, [NOBODY], ask) == b"pseudonyms"
        assert "permission denied on the socket" in capfd.readouterr().err
        assert ask() == b"names"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('socket = "outrider.sock"\n', "expected a full path"),
        ('host_names = ["https://x.example"]\n', "expected a name alone"),
        ('host_names = ["x.example:9690"]\n', "expected a name alone"),
        ('show_users = "all"\n', "show_users"),
        (f'socket = "/tmp/{"x" * 120}"\n', "longer than 107 bytes"),
    ],
)
def test_a_wrong_setting_is_refused(tmp_path: Path, setting: str, message: str) -> None:
    assert message in refused(SmallSite(tmp_path, head=setting))


def test_a_secret_comes_from_systemds_folder(tmp_path: Path) -> None:
    (tmp_path / "http-token").write_text("0123456789abcdef0123456789abcdef\n")
    head = 'token_file = "$CREDENTIALS_DIRECTORY/http-token"\n'
    site = SmallSite(tmp_path, head=head, environ={"CREDENTIALS_DIRECTORY": str(tmp_path)})
    with site.daemon as daemon:
        assert over_port(daemon.url, "/api/v1/status")[0] == 401
        bearer = {"Authorization": "Bearer 0123456789abcdef0123456789abcdef"}
        assert over_port(daemon.url, "/api/v1/status", **bearer)[0] == 200
    assert "$CREDENTIALS_DIRECTORY is not set" in refused(site)


def test_systemds_folder_gets_the_socket(tmp_path: Path, path: Path) -> None:
    site = SmallSite(tmp_path, environ={"RUNTIME_DIRECTORY": str(path.parent)})
    with site.daemon:
        assert status_of(get(path, "/healthz")) == 200

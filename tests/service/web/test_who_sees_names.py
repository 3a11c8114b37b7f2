"""Access and visible names: by token, setting and socket."""

import os
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import check_config
from outrider.service.web import serve
from outrider.service.web.access import Access, Allowed, Peer, Refused, may_enter, peer_of
from tests.service.web.small_site import SmallSite

TOKEN = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"


async def looked(access: Access, sent: str | None) -> tuple[int, bool, str]:
    """Return a TCP client's status, whether it sees names, and the reason if not."""
    site = SmallSite()
    headers = {} if sent is None else {"Authorization": f"Bearer {sent}"}
    async with (
        serve(site.app(access=access), "127.0.0.1", 0) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
        client.get("/api/v1/status", headers=headers) as answer,
    ):
        told = await answer.json()
        return answer.status, site.sees_names, told.get("error", "")


@pytest.mark.parametrize(
    ("rules", "sent", "status", "sees"),
    [
        ({"token": TOKEN}, None, 401, False),
        ({"token": TOKEN}, OTHER, 401, False),
        ({"token": TOKEN}, TOKEN, 200, True),
        ({"token": TOKEN, "show_users": "nobody"}, TOKEN, 200, False),
        ({"token": TOKEN, "show_users": "everybody"}, TOKEN, 200, True),
        ({}, None, 200, False),
        ({}, TOKEN, 200, False),
        ({"show_users": "everybody"}, None, 200, True),
        ({"names_token": TOKEN}, None, 200, False),
        ({"names_token": TOKEN}, OTHER, 401, False),
        ({"names_token": TOKEN}, TOKEN, 200, True),
        ({"names_token": TOKEN, "show_users": "nobody"}, TOKEN, 200, False),
    ],
)
async def test_who_comes_over_the_port_is_let_in_and_shown_names_by_the_rules(
    rules: dict[str, Any], sent: str | None, status: int, sees: bool
) -> None:
    assert (await looked(Access(**rules), sent))[:2] == (status, sees)


async def test_a_wrong_token_is_told_what_is_right() -> None:
    assert (await looked(Access(TOKEN), OTHER))[2].startswith("a token is required: send it as")
    why = (await looked(Access(names_token=TOKEN), OTHER))[2]
    assert why == "wrong token; without a token, users are shown as pseudonyms"


@pytest.mark.parametrize(
    ("rules", "wants", "how"),
    [
        ({}, False, "over the daemon's Unix socket"),
        ({"names_token": TOKEN}, True, "to clients that send the token: sign in"),
        ({"token": TOKEN}, True, "to clients that send the token: sign in"),
        ({"token": TOKEN, "show_users": "nobody"}, False, "users' names are never shown here"),
    ],
)
def test_the_page_can_say_how_names_are_seen(rules: dict[str, Any], wants: bool, how: str) -> None:
    access = Access(**rules)
    assert access.wants_token == wants
    assert how in access.how_to_see_names


def configured(folder: Path, **settings: Any) -> Access:
    log = {"type": "logtail", "paths": ["/nowhere"]}
    return Access.configured(
        check_config({"adapters": {"log": log}} | settings, "x").config, folder
    )


async def test_the_token_beside_the_journal_shows_names_and_keeps_nobody_out(
    tmp_path: Path,
) -> None:
    assert not configured(tmp_path).wants_token
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "token").chmod(0o600)
    access = configured(tmp_path)
    assert access.wants_token
    assert (await looked(access, None))[:2] == (200, False)
    assert (await looked(access, TOKEN))[:2] == (200, True)


def test_a_token_beside_the_journal_that_is_none_shows_nobody_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short")
    with capture_logs() as logs:
        access = configured(tmp_path)
    assert not access.wants_token
    assert [line["event"] for line in logs] == ["token_ignored"]
    with pytest.raises(ConfigurationError, match="token"):
        configured(tmp_path, token_file=str(tmp_path / "token"))


async def test_with_a_token_of_the_configuration_the_one_beside_the_journal_opens_nothing(
    tmp_path: Path,
) -> None:
    for name, token in (("token", OTHER), ("file", TOKEN)):
        (tmp_path / name).write_text(token)
        (tmp_path / name).chmod(0o600)
    access = configured(tmp_path, token_file=str(tmp_path / "file"))
    assert (await looked(access, OTHER))[0] == 401
    assert (await looked(access, TOKEN))[:2] == (200, True)


async def test_a_reload_changes_the_rules_and_not_the_group_of_the_socket() -> None:
    access = Access(TOKEN)
    access.gid = 7
    access.follow(Access(show_users="everybody"))
    assert access.gid == 7
    assert (await looked(access, None))[:2] == (200, True)


def test_who_connects_to_the_socket_is_known_by_the_kernels_word() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        peer = peer_of(ours)
        assert (peer.pid, peer.uid, peer.gids[0]) == (os.getpid(), os.geteuid(), os.getegid())
        assert set(os.getgroups()) <= set(peer.gids)
        assert Access()._judge_peer(ours) == Allowed(sees_names=True, known=True)
        assert Access(show_users="nobody")._judge_peer(ours) == Allowed(
            sees_names=False, known=True
        )
    refused = Access()._judge_peer(ours)
    assert isinstance(refused, Refused), "it is closed by now"
    assert (refused.status, refused.why[:36]) == (403, "the kernel does not report your user")


@pytest.mark.parametrize(
    ("uid", "gids", "gid", "enters"),
    [
        (0, (), None, True), (4242, (7,), None, False), (4242, (7, 8), 8, True),
        (4242, (7, 8), 9, False), (4242, (0,), None, False),
    ],
)  # fmt: skip
def test_root_our_own_user_and_the_sockets_group_may_enter(
    uid: int, gids: tuple[int, ...], gid: int | None, enters: bool
) -> None:
    assert may_enter(Peer(1, uid, gids), gid) is enters
    assert may_enter(Peer(1, os.geteuid(), gids), gid)

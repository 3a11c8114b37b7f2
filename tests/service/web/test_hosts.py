"""Accepted host names of requests, against DNS rebinding by other pages."""

import pytest

from outrider.service.web.access import Hosts

OURS = ("localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1", "127.0.0.1:80", "[::1]:8080",
        "127.9.9.9", "desk.campus", "Desk.Campus:8080")  # fmt: skip
STRANGE = (
    "evil.example", "evil.example:8080", "localhost.evil.example", "10.1.2.3", "10.1.2.3:80",
    "[2001:db8::7]:80", "", ":8080", "localhost:80a", "localhost:8080:1", "[::1", "[::1]8080",
    "desk.campus:٨٠", "127.0.0.1.evil.example",
)  # fmt: skip


@pytest.mark.parametrize("host", OURS)
def test_names_of_this_host_and_those_that_are_declared_are_ours(host: str) -> None:
    assert Hosts("127.0.0.1", ["desk.campus"]).is_ours(host)


@pytest.mark.parametrize("host", STRANGE)
def test_no_other_name_is(host: str) -> None:
    assert not Hosts("127.0.0.1", ["desk.campus"]).is_ours(host)


@pytest.mark.parametrize("listen", ["0.0.0.0", "::", ""])
def test_who_listens_everywhere_may_be_called_by_any_address_and_by_no_other_name(
    listen: str,
) -> None:
    hosts = Hosts(listen)
    assert hosts.is_ours("10.1.2.3:8080")
    assert hosts.is_ours("[2001:db8::7]")
    assert not hosts.is_ours("evil.example")
    assert not Hosts("10.1.2.3").is_ours("10.1.2.4")
    assert Hosts("10.1.2.3").is_ours("10.1.2.3:8080")

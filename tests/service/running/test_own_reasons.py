"""Reasons why jobs wait, for the user who runs the daemon and for other users next to it."""

import json
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.cli.configuration import daemon_address
from outrider.cli.daemon import explain_path
from tests.cli.running import outrider
from tests.free_port import free_port
from tests.service.running.other_users import NOBODY, as_user, get, need_root, open_folder
from tests.service.running.small_site import SmallSite

pytest.importorskip("htcondor2")

OWN, OTHER = pwd.getpwuid(NOBODY).pw_name, "bob"
POOL = f"""
[[machines]]
name = "m1"
memory_mb = 8192

[[jobs]]
user = "{OWN}"
at_s = 1
run_s = 1e9
submit = {{ request_memory = "900000", requirements = 'Arch != "{OTHER}"' }}

[[jobs]]
user = "{OTHER}"
at_s = 1
run_s = 1e9
submit = {{ hold = "true" }}

[[jobs]]
user = "{OWN}"
at_s = 1
run_s = 1e9
submit = {{ hold = "true" }}
"""
TABLES = """
[adapters.pool]
type = "mock_condor"
pool = "pool.toml"
look_s = 1.0
"""


def pool_site(folder: Path, head: str = "") -> SmallSite:
    """A mock pool with a job that is too large, and two that are held."""
    site = SmallSite(folder, head=head, tables=TABLES.replace("pool.toml", f"{folder}/pool.toml"))
    (folder / "pool.toml").write_text(POOL)
    return site


def known(site: SmallSite) -> None:
    site.daemon.wait_until("all known", lambda s: s["jobs"]["queued"] + s["jobs"]["held"] == 3)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a daemon to which other users may connect."""
    need_root()
    with open_folder() as folder:
        site = pool_site(tmp_path_factory.mktemp("beside"), f'socket = "{folder / "s"}"\n')
        with site.daemon:
            known(site)
            yield folder / "s"


def as_other(path: Path, asked: str) -> dict[str, Any]:
    """Return the answer that the other user of this host gets over the socket."""
    answer = as_user(NOBODY, [NOBODY], lambda: get(path, asked))
    found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


def test_a_user_reads_why_an_own_job_waits_and_no_other_name(beside: Path) -> None:
    waits = as_other(beside, "/api/v1/explain/1.0")
    assert "no machine meets" in waits["cause"]
    assert "900000" in waits["cause"]
    assert waits["batch_system"]["remedies"]
    assert waits["withheld"] is None
    assert f'"{OTHER}"' not in json.dumps(waits), "another user's name is a pseudonym"
    clauses = " ".join(clause["text"] for clause in waits["batch_system"]["clauses"])
    assert 'Arch != "u-' in clauses
    held = as_other(beside, "/api/v1/explain/3.0")
    assert f"is held: submitted on hold at user's request (by user {OWN})." in held["cause"]


def test_a_user_is_told_that_the_reason_of_a_foreign_job_is_withheld(beside: Path) -> None:
    held = as_other(beside, "/api/v1/explain/2.0")
    assert held["cause"].endswith("#2.0 is held; the batch system's own reason is withheld.")
    assert (held["held_because"], held["batch_system"]) == (None, None)
    assert f"the job is not of the user {OWN}" in held["withheld"]
    assert OTHER not in json.dumps(held)


def test_a_list_names_the_users_own_jobs_and_reasons_alone(beside: Path) -> None:
    rows = {row["job"].rpartition("#")[2]: row for row in as_other(beside, "/api/v1/jobs")["jobs"]}
    assert [rows[job]["user"][:2] for job in ("1.0", "2.0", "3.0")] == [OWN[:2], "u-", OWN[:2]]
    assert rows["2.0"]["reason"] is None
    assert f"(by user {OWN})" in rows["3.0"]["reason"]
    mine = as_other(beside, f"/api/v1/jobs?user={OWN}")
    assert len(mine["jobs"]) == 2
    assert not as_other(beside, f"/api/v1/jobs?user={OTHER}")["jobs"]


def test_root_reads_all_over_the_same_socket_and_may_not_be_mistaken(beside: Path) -> None:
    for job in ("1.0", "2.0"):
        for _ in range(2):  # also an answer that is shared among clients
            theirs = as_other(beside, f"/api/v1/explain/{job}")
            ours = json.loads(get(beside, f"/api/v1/explain/{job}").partition(b"\r\n\r\n")[2])
            assert OTHER in json.dumps(ours)
            assert OTHER not in json.dumps(theirs)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SmallSite, str]]:
    """A daemon without a configured socket, at the end of a long path."""
    folder = tmp_path_factory.mktemp("own") / ("x" * 90)
    folder.mkdir()
    site = pool_site(folder)
    port = free_port()
    site.config.write_text(site.config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    with site.daemon:
        known(site)
        yield site, f"http://127.0.0.1:{port}"


def test_the_socket_of_the_state_directory_is_for_its_user_alone(
    own: tuple[SmallSite, str],
) -> None:
    site, _ = own
    made = (site.state / "outrider.sock").stat()
    assert (stat.S_ISSOCK(made.st_mode), stat.S_IMODE(made.st_mode)) == (True, 0o600)
    explained = outrider("explain", "2.0", "--config", site.config).out
    assert f"is held: submitted on hold at user's request (by user {OTHER})." in explained


def test_without_a_configuration_the_own_socket_is_found_by_the_port(
    own: tuple[SmallSite, str], capfd: pytest.CaptureFixture[str]
) -> None:
    need_root()
    _, url = own
    ours = daemon_address(None, None)._replace(url=url, socket=None)
    assert f"(by user {OTHER})" in ours.ask(explain_path("2.0"))["cause"]

    def ask() -> bytes:
        return json.dumps(ours.ask(explain_path("2.0"))).encode()

    theirs = json.loads(as_user(NOBODY, [NOBODY], ask))
    assert "the daemon's user and root see it over" in theirs["withheld"]
    assert OTHER not in json.dumps(theirs)
    assert not capfd.readouterr().err


def test_a_url_that_was_named_is_asked_alone(own: tuple[SmallSite, str]) -> None:
    _, url = own
    explained = outrider("explain", "2.0", "--url", url).out
    assert OTHER not in explained
    assert "withheld: the batch system's own reason" in explained


def test_a_journal_of_another_user_is_said_to_be_private() -> None:
    need_root()
    with open_folder() as folder:
        site = SmallSite(folder)
        site.state.mkdir(mode=0o700)
        site.config.chmod(0o644)
        done = as_user(
            NOBODY, [NOBODY],
            lambda: repr(outrider("explain", "1.0", "--config", site.config)).encode(),
        ).decode()  # fmt: skip
    assert "its journal is private to the daemon's user" in done

"""No answer names a user to a client without rights, whatever users write into names and reasons.

Every endpoint of the daemon, its metrics, its page and its log are searched. A client that sends
the token sees all names in the same places.
"""

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.service.running.other_users import NOBODY, need_root
from tests.service.running.small_site import SmallSite
from tests.service.running.test_personal_vos import tell_of_one_more

TOKEN = "0123456789abcdef0123456789abcdef"
ALICE, BOB, EVE, DAVE, CAROL = USERS = (
    "alicewonder", "bobbuilder", "evepolastri", "dave.lister", "carolcurie",
)  # fmt: skip
VOS = {
    "physics": ALICE,
    ALICE: BOB,
    f"pi_{ALICE}": EVE,
    f"{ALICE}-lab": DAVE,
    f"grid:{ALICE.upper()}": CAROL,
    f"chem-{DAVE}": CAROL,
}
"""VOs, each with the user who submits a job to it."""
TABLES = """
[adapters.log]
type = "logtail"
paths = ["{log}", "FOLDER/users/*.log"]
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1

[policies.fifo]

[policies.fair_share]

[policies.sarsa]
"""
HOLD_REASON = f"via condor_hold (by user {ALICE}): ask {BOB}"
TEMPLATES = ("/", "/page/{asset}", "/api/v1/openapi.json")
"""Paths of files, which are the same for all."""


def record(kind: int, cluster: int, **given: object) -> bytes:
    """A record of an event log, in HTCondor's JSON form."""
    about = {"Cluster": cluster, "Proc": 0, "Subproc": 0, "EventTime": "2024-11-21T03:17:00.418Z"}
    return json.dumps({**about, "EventTypeNumber": kind, **given}).encode() + b"\n"


def job(cluster: int, user: str, vo: str, host: str = "10.0.0.200") -> bytes:
    """A submission, and the record that names its user."""
    ad = {"TriggerEventTypeNumber": 0, "Owner": user, "AccountingGroup": vo}
    return record(0, cluster, SubmitHost=f"<{host}:9618>") + record(28, cluster, **ad)


class Site(SmallSite):
    """A daemon with users' names in every field that users write."""

    def __init__(self, folder: Path, more: str = "") -> None:
        super().__init__(folder, tables=TABLES.replace("FOLDER", str(folder)) + more)
        self.state.mkdir(mode=0o700)
        token = self.state / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        jobs = list(enumerate(VOS.items(), 1))
        for cluster, (vo, user) in jobs:
            self.log.raw(job(cluster, user, vo))
        held = len(jobs) + 1
        self.log.raw(job(held, CAROL, "physics"))
        self.log.raw(record(12, held, HoldReason=HOLD_REASON, HoldReasonCode=1))
        started = len(jobs) + 2
        self.log.raw(job(started, BOB, f"{ALICE}-lab"))
        self.log.raw(record(1, started, ExecuteHost="<10.0.0.7:9618>"))
        self.jobs_n = started
        self.mallory = folder / "users" / "mallory.log"
        self.mallory.parent.mkdir()

    def known(self, jobs: int) -> None:
        """Wait until so many jobs are at the site."""
        states = ("queued", "running", "held")
        self.daemon.wait_until("known", lambda s: sum(s["jobs"][name] for name in states) == jobs)

    def ready(self) -> None:
        """Wait until every job is known and recorded."""
        self.known(self.jobs_n)
        tell_of_one_more(self, f"pi_{ALICE}")
        self.daemon.wait_until("recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"])

    def asked(self, path: str, token: str = "") -> str:
        """Return the text of a path, and of an error too."""
        request = urllib.request.Request(self.daemon.url + path)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return str(answer.read().decode())
        except urllib.request.HTTPError as error:
            return error.read().decode()

    def paths(self) -> list[str]:
        """Return every path that answers, with each job and machine in it."""
        rows = json.loads(self.asked("/api/v1/jobs"))["jobs"]
        machines = json.loads(self.asked("/api/v1/machines"))["machines"]
        found = ["/metrics"]
        for path in sorted(json.loads(self.asked("/api/v1/openapi.json"))["paths"]):
            if path in TEMPLATES:
                continue
            if "{job}" in path:
                found += [path.replace("{job}", quote(row["job"], safe="")) for row in rows]
            elif "{machine}" in path:
                found += [path.replace("{machine}", row["machine"]) for row in machines]
            else:
                found.append(path)
        return [*found, "/api/v1/jobs?state=held", "/api/v1/jobs?reason=ask", "/api/v1/nothing"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("plain"))
    with site.daemon:
        site.ready()
        yield site


def test_no_path_names_a_user_to_a_plain_client(site: Site) -> None:
    shown = {path: site.asked(path).casefold() for path in site.paths()}
    assert len(shown) > 25, "every endpoint is asked"
    named = {
        path: sorted(
            {text[max(0, at - 40) : at + 40] for user in USERS if (at := text.find(user)) >= 0}
        )
        for path, text in shown.items()
        if any(user in text for user in USERS)
    }
    assert not named, json.dumps(named, indent=1)


def test_who_sends_the_token_sees_all_names_in_the_same_places(site: Site) -> None:
    shown = {path: site.asked(path, TOKEN) for path in site.paths()}
    jobs = json.loads(shown["/api/v1/jobs"])["jobs"]
    assert {row["user"] for row in jobs} == set(USERS)
    assert {row["vo"] for row in jobs} == set(VOS)
    assert {row["vo"] for row in json.loads(shown["/api/v1/vos"])["vos"]} >= set(VOS)
    assert {row["user"] for row in json.loads(shown["/api/v1/users"])["users"]} == set(USERS)
    assert json.loads(shown["/api/v1/status"])["wait_s"]["by_vo"].keys() <= set(VOS)
    assert HOLD_REASON in shown["/api/v1/jobs?state=held"]
    assert f'vo="{ALICE}-lab"' in shown["/metrics"]


def test_the_daemons_log_names_no_user(site: Site) -> None:
    text = site.log_text().casefold()
    assert not [user for user in USERS if user in text]


def test_a_users_own_log_is_no_dictionary_of_pseudonyms(site: Site) -> None:
    """Mallory writes every name into a log below the pattern, and looks for the pseudonyms."""
    need_root()
    before = {row["user"] for row in json.loads(site.asked("/api/v1/jobs"))["jobs"]}
    host = "10.0.0.201"
    part = site.mallory.with_suffix(".part")
    names = [*USERS, f"{ALICE}-lab"]
    written = b"".join(
        job(cluster, name, name if cluster % 2 else ALICE, host)
        for cluster, name in enumerate(names, 9000)
    )
    part.write_bytes(written + record(12, 9000, HoldReason=" ".join(USERS)))
    os.chown(part, NOBODY, NOBODY)
    part.rename(site.mallory)
    site.known(site.jobs_n + len(names))
    rows = json.loads(site.asked("/api/v1/jobs"))["jobs"]
    own = [row for row in rows if row["job"].startswith(f"{host}#")]
    others = [row for row in rows if not row["job"].startswith(f"{host}#")]
    assert len(own) == len(names)
    assert {row["user"] for row in others} == before, "as they were"
    assert before.isdisjoint(row["user"] for row in own)
    assert {row["vo"] for row in others}.isdisjoint({row["vo"] for row in own} - {"physics"})
    users = json.loads(site.asked("/api/v1/users"))["users"]
    assert before < {row["user"] for row in users}
    totals = json.loads(site.asked("/api/v1/vos"))["vos"]
    shown = {row["user"] for row in rows} | {row["vo"] for row in rows} - {"physics"}
    assert shown.isdisjoint(row["vo"] for row in totals)
    for user in before:
        answer = json.loads(site.asked(f"/api/v1/jobs?user={user}"))
        assert not [row for row in answer["jobs"] if row["job"].startswith(f"{host}#")]
    full = json.loads(site.asked("/api/v1/users", TOKEN))["users"]
    assert {row["user"] for row in full} == {*USERS, f"{ALICE}-lab"}
    assert len(full) == len({(row["user"], row["vo"]) for row in full}), "no user is listed twice"
    test_no_path_names_a_user_to_a_plain_client(site)

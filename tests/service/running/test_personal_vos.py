"""A VO that is named for a user is shown by a pseudonym, too, also after a restart."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.api import Batch
from outrider.model.events import CHANGED, COMPLETED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.core.core import PERSONAL_VOS_KEY
from outrider.service.core.user_privacy import (
    MAX_PERSONAL_VOS,
    KnownUsers,
    Pseudonyms,
    Viewer,
    is_named_for,
    is_pseudonym,
    named_explanation,
    named_rows,
    named_status,
)
from outrider.service.metrics.store import MetricStore
from outrider.service.mqtt.messages import row_message
from outrider.service.shapes.values import OutsideText, UserName, VoName
from outrider.service.twin import starts_file
from outrider.service.twin.starts_file import OneMoreForecast, StartsFile
from outrider.service.web.endpoints.jobs import JobRow, Jobs
from outrider.service.web.endpoints.probes import shown_to
from tests.fixtures.cores import T, core_of, tell
from tests.service.running.process import DaemonProcess
from tests.service.running.small_site import SmallSite

NAME = "carol.curie"
SHOWN = (
    "/api/v1/status", "/api/v1/jobs", "/metrics", "/api/v1/explain/1.0", "/api/v1/decisions",
    "/api/v1/utility",
)  # fmt: skip


def submitted() -> bytes:
    about = {"Cluster": 1, "Proc": 0, "Subproc": 0, "EventTime": "2024-11-21T03:17:00.418Z"}
    owner = {"Owner": NAME, "AccountingGroup": NAME}
    records = [
        {**about, "EventTypeNumber": 0, "SubmitHost": "<10.0.0.200:9618>"},
        {**about, "EventTypeNumber": 28, "TriggerEventTypeNumber": 0, **owner},
        {**about, "EventTypeNumber": 1, "ExecuteHost": "<10.0.0.7:9618>"},
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def tell_of_one_more(site: SmallSite, vo: str = NAME) -> None:
    """Write a file of expected starts with an estimate for one more job of a VO."""
    estimate = OneMoreForecast(
        vo=vo, job_class="batch", cpus=1, estimate_s=None, n=1, wait_s=None, utility=None
    )
    now_s = time.time()
    starts_file.write(
        site.state, StartsFile(asked_s=now_s, one_more=[estimate], one_more_asked_s=now_s)
    )


def kinds_at(daemon: DaemonProcess) -> list[dict[str, Any]]:
    kinds: list[dict[str, Any]] = daemon.get("/api/v1/utility")["one_more_job"]["kinds"]
    return kinds


def test_what_one_more_job_would_meet_hides_it_too(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.raw(submitted())
    with site.daemon as daemon:
        daemon.wait_until("started", lambda s: s["jobs"]["running"] == 1)
        tell_of_one_more(site)
        daemon.wait_until("written", lambda _: bool(kinds_at(daemon)))
        [kind] = kinds_at(daemon)
        (vo,) = daemon.status()["wait_s"]["by_vo"]
        assert kind["vo"] == vo
        assert vo.startswith("u-")
        assert NAME not in daemon.text("/api/v1/utility")


def test_it_is_hidden_before_and_after_a_restart(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.raw(submitted())
    with site.daemon as daemon:
        daemon.wait_until("started", lambda s: s["jobs"]["running"] == 1)
        daemon.wait_until("recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"])
        before = [daemon.text(path) for path in SHOWN]
        daemon.kill()
        daemon.start()
        after = [daemon.text(path) for path in SHOWN]
        assert daemon.stop() == 0
    with site.daemon as daemon:  # from a snapshot: what came before it is not fed again
        from_snapshot = [daemon.text(path) for path in SHOWN]
    (vo,) = json.loads(before[0])["wait_s"]["by_vo"]
    assert vo.startswith("u-")
    for shown in (before, after, from_snapshot):
        assert NAME not in "".join(shown)
        assert f'vo="{vo}"' in shown[2]
        assert vo in json.loads(shown[0])["wait_s"]["by_vo"]


def test_it_is_not_kept_where_pseudonyms_are_asked_for(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, head="pseudonymise_users = true\n")
    site.log.raw(submitted())
    with site.daemon as daemon:
        daemon.wait_until("started", lambda s: s["jobs"]["running"] == 1)
        assert daemon.stop() == 0
    for path in site.state.rglob("*"):
        assert not path.is_file() or NAME.encode() not in path.read_bytes(), path


def test_it_is_recorded_once_with_the_first_entry_that_needs_it() -> None:
    core = core_of("a")
    core.begin()
    recorded = []
    for n, name in enumerate(("physics", NAME, NAME)):
        tell(core, "a", [(T + n, SUBMITTED, str(n), JobSpec(user=NAME, vo=name))], T + n)
        entry = core.entry("a", Batch(events=[], cursor=n))
        assert entry is not None
        recorded.append(entry.meta.get(PERSONAL_VOS_KEY))
    assert recorded == [None, {NAME: NAME}, None]


@pytest.mark.parametrize(
    ("vo", "user", "named"),
    [
        ("ada", "ada", True), ("physics.ada", "ada", True), ("ada@site", "ada", True),
        ("physics.ada.lovelace", "ada.lovelace", True), ("physics", "ada", False),
        ("adamant", "ada", False), ("canada", "ada", False), ("all", "", False),
        ("pi_ada", "ada", True), ("ada-lab", "ada", True), ("grid:ada", "ada", True),
        ("Physics.ADA", "ada", True), ("ada1", "ada", False),
    ],
)  # fmt: skip
def test_which_vos_are_named_for_a_user(vo: str, user: str, named: bool) -> None:
    assert (bool(user) and is_named_for(vo, user)) is named
    personal = KnownUsers()
    event: NamedEvent = (0.0, SUBMITTED, "1.0", JobSpec(user=user, vo=vo))
    assert personal.note([event], lambda name: None) is named
    names = Viewer(Pseudonyms(b"key"), personal, shown=False)
    shown = user.casefold() in names.vo(vo).casefold() and bool(user)
    assert shown is (user in vo.casefold() and bool(user) and not named)


@pytest.mark.parametrize("vo", ["alice", "pi_alice", "alice-lab", "alice.physics", "Grid/Alice"])
@pytest.mark.parametrize("vo_first", [True, False])
def test_a_vo_that_is_named_for_any_known_user_is_hidden(vo: str, vo_first: bool) -> None:
    """Students submit to the account of their professor, who may have jobs elsewhere."""
    known = KnownUsers()
    students: NamedEvent = (0.0, SUBMITTED, "1.0", JobSpec(user="bob", vo=vo))
    own: NamedEvent = (1.0, SUBMITTED, "2.0", JobSpec(user="alice", vo="physics"))
    names = Viewer(Pseudonyms(b"key"), known, shown=False)
    assert names.vo(vo) == vo, "nobody of that name is known"
    known.note([students, own] if vo_first else [own, students], lambda name: None)
    names = names.for_user("")  # one for each answer
    assert "alice" not in names.vo(vo).casefold()
    assert names.vo("physics") == "physics"
    assert "alice" not in names.for_user("bob").vo(vo).casefold()


def test_users_are_known_again_after_a_restart_from_a_snapshot() -> None:
    core, again = core_of("log"), core_of("log")
    submitted = [(T, SUBMITTED, "1.0", JobSpec(user=NAME, vo="physics"))]
    tell(core, "log", submitted, T + 100)
    again.restore(core.save())
    names = Viewer(Pseudonyms(b"key"), again.known_users, shown=False)
    assert NAME not in names.vo(f"pi_{NAME}")


def test_as_many_names_as_there_may_be_are_compared_in_no_time() -> None:
    known = KnownUsers()
    for n in range(10_000):
        known.add(f"user{n}")
    vos = [f"group{n}.lab-{n}_user{10 * n}" for n in range(1_000)]
    began_s = time.process_time()
    assert all(known.spans_in(vo) for vo in vos)
    first_s = time.process_time() - began_s
    for _ in range(10):
        assert all(known.spans_in(vo) for vo in vos)
    again_s = time.process_time() - began_s - first_s
    assert first_s < 0.5
    assert again_s < 5 * first_s, "results are kept"


def test_a_change_that_tells_only_half_is_joined_to_what_is_known() -> None:
    class History:
        spec = JobSpec(user="ada", vo="all")

    personal = KnownUsers()
    assert personal.note([(0.0, CHANGED, "1.0", {"vo": "ada"})], lambda name: History())
    assert personal.users == {"ada": "ada"}


def test_beyond_the_most_that_are_kept_every_vo_is_hidden() -> None:
    personal = KnownUsers()
    for n in range(MAX_PERSONAL_VOS + 1):
        personal.note([(0.0, SUBMITTED, "1.0", JobSpec(user="a", vo=f"{n}.a"))], lambda name: None)
    assert len(personal.users) == MAX_PERSONAL_VOS
    names = Viewer(Pseudonyms(b"key"), personal, shown=False)
    assert names.vo(f"{MAX_PERSONAL_VOS}.a").startswith("u-")
    assert "physics" not in names.vo("physics")


def explained(text: str, held: str | None = None) -> dict[str, Any]:
    return {
        "cause": "1.0 is held", "sentence": "1.0 is held", "held_because": held,
        "batch_system": None, "batch_system_errors": [], "lease": None,
        "policies": [
            {"name": "p", "explanation": text, "text": "", "scores": {f"batch {NAME} 1 min": 0.5}}
        ],
        "decisions": [],
    }  # fmt: skip


def seen(names: Viewer, answer: dict[str, Any], user: str) -> Any:
    """Return the explanation of a user's job as a client gets it."""
    return names.plain(named_explanation(answer, user))


def test_names_in_what_the_batch_system_says_of_a_hold_are_shown_to_those_who_may_see_them() -> (
    None
):
    answer = explained("", "via condor_hold (by user ada): ask bob")
    known = KnownUsers()
    known.add("ada")
    known.add("bob")
    viewers = {shown: Viewer(Pseudonyms(b"key"), known, shown) for shown in (True, False)}
    held = {shown: seen(names, answer, "bob")["held_because"] for shown, names in viewers.items()}
    assert held[True] == answer["held_because"]
    assert "user ada" not in held[False]
    assert "ask bob" not in held[False]
    own = seen(viewers[False].for_user("bob"), answer, "bob")["held_because"]
    assert own.endswith(": ask bob")
    assert "user ada" not in own


def test_what_a_policy_says_of_a_job_does_not_name_its_user() -> None:
    names = Viewer(Pseudonyms(b"key"), KnownUsers(), shown=False)
    text = "ada has 3 jobs; ada@site waits, adamant does not, canada neither; Ada? (ada)"
    answer = seen(names, explained(text), "ada")
    hidden = names.text(OutsideText("ada", "ada"))
    assert is_pseudonym(hidden)
    assert hidden != names.user("ada"), "a text may name anybody, and is no dictionary"
    assert answer["policies"][0]["explanation"] == (
        f"{hidden} has 3 jobs; {hidden}@site waits, adamant does not, canada neither; Ada? "
        f"({hidden})"
    )
    user = names.user("ada")
    assert names.user(user) == user, "a pseudonym is not hidden again"
    open_names = Viewer(Pseudonyms(b"key"), KnownUsers(), shown=True)
    assert seen(open_names, explained(text), "ada") == explained(text)
    assert open_names.user("ada") == "ada"


def test_an_explanation_does_not_name_the_users_in_vos_of_other_jobs() -> None:
    personal = KnownUsers()
    personal.note([(0.0, SUBMITTED, "2.0", JobSpec(user=NAME, vo=NAME))], lambda name: None)
    names = Viewer(Pseudonyms(b"key"), personal, shown=False)
    text = f"batch {NAME} 10 min before it, physics after. Then {NAME}."
    answer = seen(names, explained(text), "")
    hidden = names.text(OutsideText(NAME, ""))
    assert is_pseudonym(hidden)
    assert answer["policies"][0]["scores"] == {f"batch {hidden} 1 min": 0.5}
    assert answer["policies"][0]["explanation"] == (
        f"batch {hidden} 10 min before it, physics after. Then {hidden}."
    )


def test_labels_of_scores_do_not_name_a_user_on_the_page_nor_over_mqtt() -> None:
    core = core_of("log", timezone="UTC", policies={"sarsa": {}})
    spec = JobSpec(user=NAME, vo=NAME)
    ran: list[NamedEvent] = [
        (T, SUBMITTED, "1.0", spec), (T + 1, STARTED, "1.0", ("m1", 1)),
        (T + 2, COMPLETED, "1.0", None), (T + 3, SUBMITTED, "2.0", spec),
    ]  # fmt: skip
    tell(core, "log", ran, T + 100)
    decisions, _ = core.decision_log.take()
    labels = [label for row in decisions for label in row.scores or ()]
    assert any(NAME in label for label in labels), "sarsa labels its scores by VO"
    names = Viewer(Pseudonyms(b"key"), core.known_users, shown=False)
    rows = names.plain(named_rows([row.as_row(1) for row in decisions]))
    assert NAME not in str(rows)
    assert names.text(OutsideText(NAME, "")) in str(rows)
    messages = [row_message(1, row, core, names) for row in decisions]
    assert NAME.encode() not in b"".join(messages)


def personal_site() -> tuple[Viewer, Viewer, KnownUsers]:
    """Return a site with a VO named for carol as shown with names and with pseudonyms."""
    personal = KnownUsers()
    personal.note([(0.0, SUBMITTED, "1.0", JobSpec(user=NAME, vo=NAME))], lambda name: None)
    pseudonyms = Pseudonyms(b"key")
    made = [Viewer(pseudonyms, personal, shown) for shown in (True, False)]
    return made[0], made[1], personal


def test_whole_answers_are_shown_as_they_are_or_with_each_personal_vo_hidden() -> None:
    shown, hidden, _ = personal_site()
    status = {
        "mode": "shadow",
        "wait_s": {"mean": 3.0, "by_vo": {NAME: 1.0, "physics": 5.0}},
        "fairness": {"windowed": 0.5, "share": {NAME: 0.25}, "target": {NAME: 0.5}},
    }
    owner = UserName(NAME)
    job = JobRow(
        "1.0", "queued", owner, VoName(NAME, owner), "batch", 4, None, None, None, None, 0,
        0.0, 0.0, pending={},
    )  # fmt: skip
    jobs = Jobs("shadow", 0.0, [job], 1)
    rows: list[dict[str, Any]] = [
        {"seq": 1, "scores": {f"batch {NAME}": 0.5}}, {"seq": 2, "scores": None},
    ]  # fmt: skip
    assert shown.vo(NAME) == NAME
    assert shown.plain(named_status(status)) == status
    assert shown.plain(named_rows(rows)) == rows
    [row] = shown.plain(jobs)["jobs"]
    assert (row["user"], row["vo"]) == (NAME, NAME)
    user, vo = hidden.user(NAME), hidden.vo(NAME)
    assert (vo.startswith("u-"), hidden.vo("physics")) == (True, "physics")
    assert hidden.plain(named_status(status)) == {
        "mode": "shadow",
        "wait_s": {"mean": 3.0, "by_vo": {vo: 1.0, "physics": 5.0}},
        "fairness": {"windowed": 0.5, "share": {vo: 0.25}, "target": {vo: 0.5}},
    }
    [row] = hidden.plain(jobs)["jobs"]
    assert row["user"] == user
    assert is_pseudonym(row["vo"])
    assert len({row["vo"], user, vo}) == 3, "a user chooses the VO, and knows which total grows"
    assert hidden.plain(named_rows(rows)) == [
        {"seq": 1, "scores": {f"batch {hidden.text(OutsideText(NAME, ''))}": 0.5}}, rows[1],
    ]  # fmt: skip


def test_names_are_encoded_for_one_client_or_not_at_all() -> None:
    for name in (UserName(NAME), VoName(NAME), OutsideText(NAME, NAME)):
        assert NAME not in f"{name} {name!r}"
        for answer in ({"name": name}, {name: 1.0}, [name]):
            with pytest.raises(TypeError):
                msgspec.json.encode(answer)
            with pytest.raises(TypeError):
                msgspec.to_builtins(answer)
            assert NAME.encode() not in personal_site()[1].encode(answer)
            assert NAME.encode() in personal_site()[0].encode(answer)


def test_metrics_hide_a_personal_vo_in_every_label_that_names_one_and_nowhere_else() -> None:
    shown, hidden, _ = personal_site()
    store = MetricStore({"vo": [NAME], "class": ["batch"], "cluster": [NAME]})
    store.set("vo_share_ratio", 0.25, NAME)
    store.set("evictions_total", 3, "owner", NAME)
    buckets = store.snapshot().observations["job_wait_seconds"]["batch", NAME].buckets
    store.set_observations("job_wait_seconds", [2, *buckets[1:]], 7.0, "batch", NAME)
    snapshot = store.snapshot()
    assert shown_to(shown, snapshot) is snapshot
    vo, of = hidden.vo(NAME), shown_to(hidden, snapshot)
    assert of.numbers["vo_share_ratio"] == {(vo,): 0.25}
    assert of.numbers["evictions_total"]["owner", NAME] == 3.0, "a machine group is no VO"
    waits = {labels: seen.total for labels, seen in of.observations["job_wait_seconds"].items()}
    assert waits["batch", vo] == 7.0
    assert NAME not in {label for labels in waits for label in labels}


def test_where_any_vo_may_be_a_users_no_word_of_a_policy_is_shown() -> None:
    _, hidden, personal = personal_site()
    personal.is_full = True
    answer = seen(hidden, explained("physics goes first"), "ada")
    assert answer["policies"][0]["explanation"].startswith("u-")
    assert "physics" not in str(answer)


def test_without_a_personal_vo_answers_are_left_as_they_are() -> None:
    nobody = Viewer(Pseudonyms(b"key"), KnownUsers(), shown=False)
    status: dict[str, Any] = {
        "wait_s": {"by_vo": {"physics": 1.0}},
        "fairness": {"share": {"physics": 1.0}, "target": {}},
    }
    assert nobody.plain(named_status(status)) == status
    assert nobody.user("") == ""

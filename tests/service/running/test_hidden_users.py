"""A user's name is replaced in events before anything keeps them, always by the same pseudonym."""

import os
from pathlib import Path

import pytest

from outrider.model.errors import LedgerError
from outrider.model.events import CHANGED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.core.user_privacy import KEY_NAME, Pseudonyms, is_pseudonym, load_key
from outrider.service.journal.recording import Recording
from outrider_adapters.logtail.filters import reported_by
from tests.fixtures.cores import T, core_of, tell

KEY = b"k" * 32


def test_a_submission_tells_a_pseudonym_in_the_vo_too() -> None:
    names = Pseudonyms(KEY)
    ada = names.of("ada")
    event: NamedEvent = (1.0, SUBMITTED, "1.0", JobSpec(user="ada", vo="physics.ada", cpus=4))
    assert names.hide(event) == (
        1.0, SUBMITTED, "1.0", JobSpec(user=ada, vo=f"physics.{ada}", cpus=4),
    )  # fmt: skip
    nobodys: NamedEvent = (1.0, SUBMITTED, "1.0", JobSpec(vo="ada"))
    assert names.hide(nobodys) == nobodys


@pytest.mark.parametrize("vo", [None, "", "ada", "physics"])
def test_so_does_a_change_that_tells_whose_the_job_is(vo: str | None) -> None:
    names = Pseudonyms(KEY)
    ada = names.of("ada")
    change = {"user": "ada", "cpus": 4} | ({} if vo is None else {"vo": vo})
    hidden = {"user": ada, "cpus": 4} | ({} if vo is None else {"vo": ada if vo == "ada" else vo})
    assert names.hide((1.0, CHANGED, "1.0", change)) == (1.0, CHANGED, "1.0", hidden)


@pytest.mark.parametrize(
    "event", [(1.0, CHANGED, "1.0", {"cpus": 4}), (1.0, STARTED, "1.0", ("ada-pc", 1))]
)
def test_what_names_no_user_stays_as_it_is(event: NamedEvent) -> None:
    assert Pseudonyms(KEY).hide(event) == event


def test_pseudonyms_are_those_of_the_sites_key_and_not_hidden_again() -> None:
    ada = Pseudonyms(KEY).of("ada")
    assert is_pseudonym(ada)
    assert Pseudonyms(KEY).of("ada") == ada != Pseudonyms(b"x" * 32).of("ada")
    assert Pseudonyms(KEY).in_vo(f"physics.{ada}", ada) == f"physics.{ada}"


def test_the_key_is_made_once_and_anew_only_where_it_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / KEY_NAME
    key = load_key(path)
    assert (len(key), path.stat().st_mode & 0o777) == (32, 0o600)
    assert load_key(path) == key
    path.write_bytes(key[:31])
    (tmp_path / "pseudonym.part").write_text("left by a daemon that was killed")
    fresh = load_key(path)
    assert len(fresh) == 32
    assert fresh != key
    assert load_key(path) == fresh


def test_a_daemon_that_cannot_keep_its_key_hides_names_until_its_end_and_says_so(
    tmp_path: Path,
) -> None:
    recording = Recording(tmp_path / "state")
    (recording.folder / "pseudonym.part").mkdir()
    with pytest.raises(LedgerError, match="the key of pseudonyms cannot be created"):
        load_key(recording.folder / KEY_NAME)
    hidden = recording.pseudonyms.of("ada")
    assert is_pseudonym(hidden)
    assert recording.pseudonyms.of("ada") == hidden, "the same as long as it runs"
    recording.close()


def test_a_name_that_a_user_reports_has_another_pseudonym_in_a_vo_too() -> None:
    names = Pseudonyms(KEY)
    told = {
        reporter: names.hide(
            (1.0, SUBMITTED, "1.0", JobSpec(user="ada", vo="physics.ada", reporter=reporter))
        )[3]
        for reporter in ("", "1000", "1001")
    }
    assert told[""].user == names.of("ada")
    assert len({spec.user for spec in told.values()}) == 3
    assert all(spec.vo == f"physics.{spec.user}" for spec in told.values())
    change = names.hide((1.0, CHANGED, "1.0", {"user": "ada", "reporter": "1000"}))[3]
    assert change["user"] == told["1000"].user


def test_who_named_a_user_before_does_not_report_the_next_name() -> None:
    """Else a log's writer would move another's job to the own pseudonyms, whose names are known."""
    core = core_of("log")
    mine = JobSpec(user="mallory", reporter="1000")
    claimed: list[NamedEvent] = [
        (T, SUBMITTED, "1.0", mine), (T + 1, CHANGED, "1.0", {"vo": "physics"}),
        (T, SUBMITTED, "2.0", mine), (T + 1, CHANGED, "2.0", {"user": "ada"}),
        (T, SUBMITTED, "3.0", JobSpec(user="ada")), (T + 1, CHANGED, "3.0", {"vo": "mallory"}),
        (T, SUBMITTED, "4.0", JobSpec(user="ada")),
        (T + 1, CHANGED, "4.0", {"user": "bob", "reporter": "1000"}),
    ]  # fmt: skip
    tell(core, "log", claimed, T + 100)
    specs = {job.number: job.spec for job in core.site.jobs.values()}
    named = [(specs[n].user, specs[n].reporter) for n in sorted(specs)]
    assert named == [("mallory", "1000"), ("ada", ""), ("ada", ""), ("bob", "1000")]


def test_the_owner_of_a_users_log_reports_the_names_in_it() -> None:
    told: list[NamedEvent] = [
        (T, SUBMITTED, "1.0", JobSpec(user="ada")), (T, SUBMITTED, "2.0", JobSpec()),
        (T, CHANGED, "1.0", {"user": "bob"}), (T, CHANGED, "1.0", {"vo": "ada"}),
        (T, STARTED, "1.0", ("m1", 1)),
    ]  # fmt: skip
    assert reported_by(0, told) is told
    assert reported_by(os.geteuid(), told) is told
    assert reported_by(4711, told) == [
        (T, SUBMITTED, "1.0", JobSpec(user="ada", reporter="4711")), *told[1:2],
        (T, CHANGED, "1.0", {"user": "bob", "reporter": "4711"}), *told[3:],
    ]  # fmt: skip

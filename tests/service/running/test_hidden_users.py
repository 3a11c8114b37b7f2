"""A user's name is replaced in events before anything keeps them, always by the same pseudonym."""

from pathlib import Path

import pytest

from outrider.model.errors import LedgerError
from outrider.model.events import CHANGED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.core.user_privacy import KEY_NAME, Pseudonyms, is_pseudonym, load_key
from outrider.service.journal.recording import Recording

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

"""`pseudonymise_users` keeps users' names off the disk and the page."""

import json
from pathlib import Path

from outrider.journal import Journal
from tests.service.running.small_site import SmallSite

NAMES = ("alice.wonder", "bob.builder")


def submitted_by(job: int, name: str) -> bytes:
    """Return a submission and the record of its user, as in HTCondor's JSON logs."""
    about = {"Cluster": job, "Proc": 0, "Subproc": 0, "EventTime": "2024-11-21T03:17:00.418Z"}
    owner = {"Owner": name, "User": f"{name}@example.org", "AccountingGroup": f"physics.{name}"}
    records = [
        {**about, "EventTypeNumber": 0, "SubmitHost": "<10.0.0.200:9618>"},
        {**about, "EventTypeNumber": 28, "TriggerEventTypeNumber": 0, **owner},
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def everything_in(folder: Path) -> bytes:
    """Every byte of every file."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def run_with(folder: Path, head: str) -> tuple[bytes, str, set[str]]:
    """State directory, page and users of the journal of a daemon that saw both users."""
    folder.mkdir()
    site = SmallSite(folder, head=head)
    for job, name in enumerate(NAMES, 1):
        site.log.raw(submitted_by(job, name))
    with site.daemon as daemon:
        daemon.wait_until("both known", lambda s: s["jobs"]["queued"] == 2)
        daemon.wait_until("recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"])
        on_disk = everything_in(site.state)
        paths = ["/api/v1/status", "/api/v1/jobs", "/api/v1/decisions", "/api/v1/explain/1.0"]
        shown = "".join(daemon.text(path) for path in [*paths, "/metrics"])
        assert daemon.stop() == 0
    with Journal(site.state / "journal.sqlite", read_only=True) as journal:
        inputs = [event for _, _, event in journal.inputs_after(0)]
    users = {extra.user for _, _, _, extra in inputs if hasattr(extra, "user")}
    log = site.log_text()
    return on_disk + everything_in(site.state), shown + log, users


def test_no_name_is_kept_or_shown_where_pseudonyms_are_asked_for(tmp_path: Path) -> None:
    on_disk, shown, users = run_with(tmp_path / "hidden", "pseudonymise_users = true\n")
    for name in NAMES:
        assert name.encode() not in on_disk
        assert name not in shown
    assert len(users) == 2
    assert all(user.startswith("u-") for user in users)
    key = tmp_path / "hidden" / "state" / "pseudonym.key"
    assert key.stat().st_mode & 0o777 == 0o600


def test_names_are_kept_where_they_are_not(tmp_path: Path) -> None:
    on_disk, shown, users = run_with(tmp_path / "plain", 'show_users = "everybody"\n')
    assert users == set(NAMES)
    for name in NAMES:
        assert name.encode() in on_disk
        assert name in shown

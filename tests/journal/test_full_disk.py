"""Disks that are full or read-only: recording stops, says why, and goes on without a gap."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.journal import Journal, LedgerFile, SnapshotStore, Writer, verify
from outrider.model.decisions import DecisionRow
from outrider.model.errors import LedgerError
from tests.journal.samples import big_entry, entry_numbers, numbered_entry


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(["-t", "tmpfs", "-o", "size=1m", "none", str(folder)])
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mount(arguments: list[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not let root mount: {done.stderr.strip()}")


def numbers_in(journal: Journal) -> list[int]:
    return entry_numbers(journal)[::3]


def fill(writer: Writer) -> tuple[int, str]:
    """Write until the first failure; return the number that failed, and why."""
    for number in range(1000):
        try:
            writer.submit(big_entry(number)).result(30)
        except LedgerError as error:
            return number, str(error)
    raise AssertionError("20 MB went into one")


def test_a_full_disk_stops_the_recording_and_a_retry_goes_on_where_it_stopped(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 400_000)
    path = small_disk / "journal.sqlite"
    writer = Writer(Journal(path))
    failed, why = fill(writer)
    assert failed > 0
    assert str(path) in why
    assert "full" in why
    assert "free some space" in why
    assert writer.failure == why
    writer.submit(big_entry(failed + 1)).exception(30)
    with pytest.raises(LedgerError, match="full"):
        writer.retry().result(30)
    with Journal(path, read_only=True) as journal:
        assert numbers_in(journal) == list(range(failed))
        assert journal.cursor("log") == failed - 1
    ballast.unlink()
    assert writer.retry().result(30) == 2
    writer.stop(30)
    report = verify(path)
    assert report.ok, report.as_text()
    with Journal(path, read_only=True) as journal:
        assert numbers_in(journal) == list(range(failed + 2))


def test_a_limit_on_file_size_stops_the_recording_by_name(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, __file__, str(tmp_path / "journal.sqlite")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    assert child.returncode == 0, child.stderr
    failed, _, why = child.stdout.partition(" ")
    assert "journal.sqlite: cannot record: " in why
    report = verify(tmp_path / "journal.sqlite")
    assert report.ok, report.as_text()
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert numbers_in(journal) == list(range(int(failed)))


def test_a_full_disk_leaves_the_older_snapshot_and_no_rest(small_disk: Path) -> None:
    store = SnapshotStore(small_disk / "snapshots")
    store.save(1, {"small": 1})
    with pytest.raises(LedgerError, match=r"snapshot-0*2\.bin: cannot write .*No space left"):
        store.save(2, {"large": b"x" * 2_000_000})
    assert [path.name for path in store.folder.iterdir()] == [store.paths()[0].name]
    assert store.load_latest() == (1, {"small": 1})


def write_two_megabytes(path: Path) -> None:
    with LedgerFile(path) as ledger:
        for job in range(40_000):
            ledger.add(
                DecisionRow(float(job), f"{job}", "start", "m1", 1, "first", "fifo", "active")
            )


def test_a_ledger_file_on_a_full_disk_takes_no_name(small_disk: Path) -> None:
    path = small_disk / "run.ledger"
    with pytest.raises(LedgerError, match=r"run\.ledger: cannot write the ledger: .*full"):
        write_two_megabytes(path)
    assert list(small_disk.iterdir()) == []


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Iterator[Path]:
    """A journal of five entries in a folder that not even root may write to."""
    folder = tmp_path / "state"
    folder.mkdir()
    with Journal(folder / "journal.sqlite") as journal:
        journal.append_all([numbered_entry(number) for number in range(5)])
    mount(["--bind", str(folder), str(folder)])
    mount(["-o", "remount,bind,ro", str(folder)])
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_journal_in_a_read_only_folder_can_be_read_and_checked(read_only_folder: Path) -> None:
    path = read_only_folder / "journal.sqlite"
    with Journal(path, read_only=True) as journal:
        assert numbers_in(journal) == list(range(5))
        with pytest.raises(LedgerError, match="readonly database; make the file"):
            journal.append(numbered_entry(5))
    assert verify(path).ok


def test_a_read_only_folder_is_refused_for_writing(read_only_folder: Path) -> None:
    with pytest.raises(LedgerError, match=r"journal\.sqlite: cannot open the journal for writing"):
        Journal(read_only_folder / "journal.sqlite")
    with pytest.raises(LedgerError, match="Read-only file system"):
        SnapshotStore(read_only_folder / "snapshots").save(1, {})


def test_a_read_only_file_system_is_refused_until_it_is_writable_again(small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"
    with Journal(path) as journal:
        journal.append(numbered_entry(0))
    mount(["-o", "remount,ro", str(small_disk)])
    with pytest.raises(LedgerError, match="cannot open the journal for writing"):
        Journal(path)
    mount(["-o", "remount,rw,size=1m", str(small_disk)])
    writer = Writer(Journal(path))
    assert writer.submit(numbered_entry(1)).result(30) == 8
    writer.stop(30)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    limited = Writer(Journal(sys.argv[1]))
    number, reason = fill(limited)
    os.write(1, f"{number} {reason}\n".encode())
    os._exit(0)  # no second try, no checkpoint: as the daemon's death would leave it

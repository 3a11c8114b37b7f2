"""Output of the ledger: JSON lines, the hash, and a replay's own file."""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.formats.tables import stream_rows
from outrider.journal import AlikeDecision, Entry, Journal, LedgerFile, LedgerHash, rows_of
from outrider.journal.ledger_file import BATCH_ROWS, ledger_sha256
from outrider.model.decisions import DecisionRow
from outrider.model.errors import LedgerError
from tests.journal.samples import decision

FIELDS = (
    "time_s", "seq", "job", "action", "machine", "cpus", "reason", "policy", "mode", "propensity",
    "scores", "input_age_s", "gate",
)  # fmt: skip
ALIKE = AlikeDecision(12.0, "2", "defer", None, 0, "explore", "bandit", "shadow", jobs=("2", "3"))
SOME = [
    decision(0.0005, "1"),
    ALIKE,
    decision(
        13.25, "ü", machine=None, action="preempt", scores=None, propensity=None, gate="would"
    ),
    decision(14.0, "o'hara", policy="o'policy", scores={"new": float("inf"), "old": 0.1}),
]


def written(path: Path, decisions: list[DecisionRow]) -> list[tuple[int, DecisionRow]]:
    with LedgerFile(path) as ledger:
        for one in decisions:
            ledger.add(one)
    with Journal(path, read_only=True) as journal:
        assert journal.last_seq() == len(decisions)
        return list(journal.decisions())


def test_a_ledger_file_is_read_like_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.ledger"
    assert written(path, SOME) == list(enumerate(SOME, 1))
    with Journal(path, read_only=True) as journal:
        assert [seq for seq, _ in journal.decisions(job="3")] == [2]
    assert [file.name for file in tmp_path.iterdir()] == ["run.ledger"]


def test_rows_keep_their_order_over_batches_and_policies(tmp_path: Path) -> None:
    with LedgerFile(tmp_path / "run.ledger") as ledger:
        for job in range(BATCH_ROWS + 10):
            policy = ("fifo", "bandit", "bandit")[job % 3]
            ledger.add(DecisionRow(job / 2, f"{job}", "start", "m1", 1, "first", policy, "active"))
        ledger.meta["trace"] = "campus"
    with Journal(tmp_path / "run.ledger", read_only=True) as journal:
        found = [(seq, one.job, one.policy) for seq, one in journal.decisions()]
        assert journal.meta("trace") == "campus"
    assert found == [
        (job + 1, f"{job}", ("fifo", "bandit", "bandit")[job % 3]) for job in range(BATCH_ROWS + 10)
    ]


def fail_in_the_middle(path: Path) -> None:
    with LedgerFile(path) as ledger:
        ledger.add(SOME[0])
        raise KeyboardInterrupt


def test_a_run_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "run.ledger"
    written(path, SOME)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        fail_in_the_middle(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.ledger"]
    written(path, SOME[:1])
    assert path.read_bytes() != before


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"nowhere/run\.ledger: cannot write the ledger"):
        LedgerFile(tmp_path / "nowhere" / "run.ledger")


def test_exported_lines_have_every_field_and_null_for_the_unknown(tmp_path: Path) -> None:
    out = io.BytesIO()
    written(tmp_path / "run.ledger", SOME)
    with Journal(tmp_path / "run.ledger", read_only=True) as journal:
        assert stream_rows(rows_of(journal, "decisions"), out, "jsonl") == len(SOME)
    lines = [json.loads(line, parse_constant=pytest.fail) for line in out.getvalue().splitlines()]
    for seq, (line, one) in enumerate(zip(lines, SOME, strict=True), 1):
        assert set(FIELDS) <= line.keys()
        assert line["seq"] == seq
        assert line["time_s"] == one.time_s
        assert ("jobs" in line) == isinstance(one, AlikeDecision)
    assert lines[1]["jobs"] == ["2", "3"]
    assert lines[2]["machine"] is None
    assert lines[2]["scores"] is None
    assert (lines[2]["gate"], lines[3]["gate"]) == ("would", None)
    assert lines[3]["scores"] == {"new": None, "old": 0.1}
    assert lines[0]["input"] == "full"


def test_the_hash_is_what_the_definition_says() -> None:
    plain = (
        "0\t1\tstart\tlab-1\t1\n"
        "12000\t2\tdefer\t\t0\n"
        "12000\t3\tdefer\t\t0\n"
        "13250\tü\tpreempt\t\t1\n"
        "14000\to'hara\tstart\tlab-1\t1\n"
    )
    expected = hashlib.sha256(plain.encode()).hexdigest()
    assert ledger_sha256(enumerate(SOME, 1)) == expected


def test_half_a_millisecond_goes_to_the_even_one() -> None:
    lines = b"0\tj\tdefer\t\t0\n" + b"2\tj\tdefer\t\t0\n"
    total = LedgerHash()
    for time_s in (0.0005, 0.0015):
        total.add(time_s, "j", "defer", None, 0)
    assert total.hexdigest() == hashlib.sha256(lines).hexdigest()


ROWS = st.tuples(
    st.floats(0, 4e9), st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
    st.sampled_from(["start", "defer"]), st.none() | st.sampled_from(["m1", "m2"]),
    st.integers(0, 64),
)  # fmt: skip


@given(st.lists(ROWS, max_size=50), st.integers(1, 200))
def test_the_hash_does_not_depend_on_blocks_or_looks(
    rows: list[tuple[float, str, str, str | None, int]], times: int
) -> None:
    looked, plain = LedgerHash(), hashlib.sha256()
    for row in rows * times:
        looked.add(*row)
        time_s, *rest = row
        parts = [str(round(time_s * 1000)), *("" if part is None else str(part) for part in rest)]
        plain.update(("\t".join(parts) + "\n").encode())
    looked.hexdigest()
    assert looked.hexdigest() == plain.hexdigest()


@pytest.mark.parametrize("read", [lambda seq: [], lambda seq: [(seq, ALIKE)]])
def test_recording_live_and_in_a_file_gives_the_same_hash(
    tmp_path: Path, read: Callable[[int], list[tuple[int, DecisionRow]]]
) -> None:
    decisions = SOME + [one for _, one in read(5)]
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(decisions=decisions))
        live = ledger_sha256(journal.decisions())
    assert live == ledger_sha256(written(tmp_path / "run.ledger", decisions))

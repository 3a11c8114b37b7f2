"""Data frames: the values of the records, with their types; each if its package is installed."""

from pathlib import Path
from typing import Any

import pytest

import outrider
from outrider.python_api.records import Run


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """Return a run, and the file of its ledger."""
    file = tmp_path_factory.mktemp("frames") / "run.sqlite"
    campus = outrider.generate_campus(1, weeks=1, machines=10)
    return outrider.replay(campus, policy="bandit", ledger=file), file


def test_arrow(ledger: tuple[Run, Path]) -> None:
    pytest.importorskip("pyarrow")
    run, file = ledger
    assert run.job_rows.to_arrow().to_pylist() == list(run.job_rows)
    with outrider.open_journal(file) as journal:
        for rows in (journal.decisions, journal.outcomes, journal.runs):
            frame = rows.to_arrow()
            assert frame.column_names == rows.columns
            plain = [
                row | ({"scores": dict(row["scores"])} if row.get("scores") else {})
                for row in frame.to_pylist()
            ]
            assert plain == list(rows)


def test_pandas(ledger: tuple[Run, Path]) -> None:
    pandas: Any = pytest.importorskip("pandas")
    run, file = ledger
    frame = run.job_rows.to_pandas()
    assert list(frame.columns) == run.job_rows.columns
    assert frame["wait_s"].mean() == pytest.approx(run.wait_s["all"]["mean"])
    assert str(frame["runs"].dtype) == "Int64"
    with outrider.open_journal(file) as journal:
        outcomes = journal.outcomes.to_pandas()
        assert str(outcomes["on_policy"].dtype) == "boolean"
        rewards = [row["reward"] for row in journal.outcomes]
        assert [None if pandas.isna(r) else r for r in outcomes["reward"]] == rewards
        assert journal.decisions.to_pandas()["scores"].tolist() == [
            row["scores"] for row in journal.decisions
        ]


def test_polars(ledger: tuple[Run, Path]) -> None:
    pytest.importorskip("polars")
    run, file = ledger
    assert run.job_rows.to_polars().to_dicts() == list(run.job_rows)
    with outrider.open_journal(file) as journal:
        for rows in (journal.decisions, journal.outcomes, journal.commands):
            frame = rows.to_polars().to_dicts()
            plain = [
                row | ({"scores": {s["name"]: s["value"] for s in row["scores"]}}
                       if row.get("scores") else {})
                for row in frame
            ]  # fmt: skip
            assert plain == list(rows)

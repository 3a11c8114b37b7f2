"""Every policy that needs no truth can be simulated forward from a daemon's state."""

from pathlib import Path

import numpy as np
import pytest

from outrider.journal import Entry, Journal
from outrider.plugins.finding import POLICIES, find, load_policy
from tests.forecast.recorded_grid import EPOCH_S, busy_weeks, told_by
from tests.forecast.shadow_sites import starts_under

NOW_S = EPOCH_S + 20 * 3_600.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a journal of a busy grid, up to a moment."""
    made = tmp_path_factory.mktemp("grid") / "journal.sqlite"
    recorded = [("grid", event) for event in told_by(busy_weeks(4)) if event[0] <= NOW_S]
    with Journal(made) as journal:
        journal.append(Entry(inputs=recorded))
    return made


@pytest.mark.parametrize("name", sorted(find(POLICIES)))
def test_it_starts_all_that_wait(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outrider.forecast.candidate_starts.MAX_REPLICATES", 3)
    monkeypatch.setattr("outrider.forecast.candidate_starts.MIN_REPLICATES", 3)
    found = starts_under(path, name)
    if load_policy(name).needs_oracle:
        assert "true run times" in str(found[name])
        return
    assert found[name].shape == (3, len(found["jobs"]))
    assert len(found["jobs"]) > 50
    assert (found[name] >= NOW_S).all()
    assert np.isfinite(found[name]).all()

"""The physics against an independent simulator's figures for a campus year."""

from pathlib import Path
from typing import NamedTuple

import pytest

from outrider.formats.campus.files import read_campus
from outrider.replay.run import CampusRun
from tests.fixtures.plays import MAKERS


class Figures(NamedTuple):
    """Figures of a policy on campus1 in data/README.md (and as measured here)."""

    jobs_mwh: float
    overhead_min: float
    evictions: int


REFERENCE = {
    "random_match": Figures(120.9, 13.5, 346_354),
    "lowest_watts": Figures(86.4, 15.1, 376_394),
}


def figures(folder: Path, policy: str) -> Figures:
    """One year under one policy."""
    out = CampusRun(read_campus(folder), [MAKERS[policy]()], lambda *row: None).run()
    energy = out["energy_wh"]
    return Figures(
        (energy["goodput"] + energy["badput"]) / 1e6,
        out["overhead_s"]["all"]["mean"] / 60.0,
        sum(out["evictions"].values()),
    )


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("policy", REFERENCE)
def test_a_campus_year_agrees_with_an_independent_simulator(shared: Path, policy: str) -> None:
    folder = shared / "data" / "campus1"
    if not folder.is_dir():
        pytest.skip("no campus1 in ../shared/data")
    got, expected = figures(folder, policy), REFERENCE[policy]
    assert got.jobs_mwh == pytest.approx(expected.jobs_mwh, rel=0.03)
    assert got.overhead_min == pytest.approx(expected.overhead_min, rel=0.10)
    assert got.evictions == pytest.approx(expected.evictions, rel=0.05)

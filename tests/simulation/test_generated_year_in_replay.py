"""A generated year under random matching, beside what the paper printed of its own."""

import pytest

from outrider.replay.run import CampusRun
from outrider.simulation.generators.campus import generate_campus
from tests.fixtures.plays import MAKERS


@pytest.mark.long
@pytest.mark.timeout(900)
def test_random_matching_gives_the_papers_point_of_reference() -> None:
    """Section 7: 37.4 MWh useful, 83.6 wasted, mean overhead 13.5 minutes.

    A year's waste varies by 5 % and its overhead by 8 %; bounds are three times that.
    """
    out = CampusRun(generate_campus(100), [MAKERS["random_match"]()], lambda *row: None).run()
    assert out["energy_wh"]["goodput"] / 1e6 == pytest.approx(37.4, rel=0.05)
    assert out["energy_wh"]["badput"] / 1e6 == pytest.approx(83.6, rel=0.15)
    assert out["overhead_s"]["all"]["mean"] / 60 == pytest.approx(13.5, rel=0.25)

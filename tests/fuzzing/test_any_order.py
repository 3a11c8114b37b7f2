"""A sample of the fuzz; the long run is ``make check-long``."""

from pathlib import Path

import pytest

from tests.fuzzing.daemon import FuzzedDaemon
from tests.fuzzing.policies import fuzzable

THOROUGH = {"fifo": 10_000, "bandit": 10_000, "survival": 10_000}
OTHERS = 500


@pytest.mark.parametrize("policy", fuzzable())
def test_no_order_of_events_ends_the_daemon_or_makes_its_figures_wrong(
    policy: str, tmp_path: Path
) -> None:
    events = THOROUGH.get(policy, OTHERS)
    daemon = FuzzedDaemon(tmp_path, policy, seed=1)
    try:
        daemon.run(events)
    finally:
        daemon.close()
    assert daemon.events >= events
    assert daemon.set_aside["fault"] == 0
    assert daemon.set_aside["impossible_value"] > 0
    if policy in THOROUGH:
        assert daemon.restarts >= 4

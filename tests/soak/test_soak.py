"""Short soak: every attack once, a kill after each, and an equal journal."""

import os
import random
from pathlib import Path

import pytest

from tests.soak.attacks import ATTACKS
from tests.soak.judging import complaints
from tests.soak.soak import soak

SECONDS = 20.0


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.mosquitto
@pytest.mark.timeout(900)
def test_under_every_attack_the_daemon_answers_stays_small_and_loses_nothing(
    tmp_path: Path,
) -> None:
    seed = int(os.environ.get("OUTRIDER_TEST_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}: OUTRIDER_TEST_SEED={seed} repeats it")  # noqa: T201 - to repeat a failure
    report = soak(tmp_path, SECONDS, seed)
    print("\n".join(report.lines()))  # noqa: T201 - seen where it fails
    assert set(report.attacks) == {attack.__name__ for attack in ATTACKS}
    assert complaints(report) == []

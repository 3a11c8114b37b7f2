"""Every claim of the paper, judged: those of table I's runs over seeds, of EGEE over windows."""

from collections.abc import Mapping
from typing import Any

from outrider_lab.papers.perez.claimed_of_fairness import claims_of_fairness
from outrider_lab.papers.perez.claimed_of_setup import claims_of_setup
from outrider_lab.papers.perez.claimed_of_waits import claims_of_waits
from outrider_lab.papers.perez.claimed_of_windows import claims_of_windows
from outrider_lab.papers.perez.grid import Size
from outrider_lab.papers.perez.measures import Unit
from outrider_lab.reporting import judging


def judged(
    size: Size, seeds: Mapping[int, Unit], windows: Mapping[str, Unit], targets: str
) -> list[dict[str, Any]]:
    """Every claim with what was measured and the verdict.

    Args:
        size: of the reproduction; one too small decides nothing.
        seeds: runs of table I, by seed.
        windows: runs of section VI.C, by window.
        targets: what VOs of the windows were promised.
    """
    too_small = None
    if size.quick:
        too_small = f"{size.jobs} jobs of a row of 6000 are too few: its queue has hardly grown"
    of_rows = [*claims_of_setup(), *claims_of_waits(), *claims_of_fairness()]
    return [
        *judging.judged(of_rows, seeds.values(), too_small),
        *judging.judged(claims_of_windows(targets), windows.values(), too_small),
    ]

"""``starts.json`` in the state directory: when the jobs that wait are expected to start."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from outrider.api.adapter import Adapter, PlannedStarts
from outrider.service.twin.twin_file import read_at_most, write_whole
from outrider.twin.answer_file import Finite

STARTS_NAME: Final = "starts.json"
_MOST_BYTES: Final = 64 << 20


class StartTold(Struct, frozen=True, gc=False):
    """When a job is expected to start, Unix seconds: an interval of 80 %, and the median.

    In the scheduler's next pass: all three are the moment of the question.
    """

    low_s: Finite
    median_s: Finite
    high_s: Finite


class Score(Struct, frozen=True, gc=False):
    """How what was said turned out.

    Attributes:
        n: starts that were foretold and have come.
        coverage_ratio: of them, those within the interval; None without any.
        pinball_s: mean pinball loss of the three quantiles, seconds; None without any.
        width_s: mean width of the intervals, seconds; of the batch system's own plan, which has
            none: of the interval that holds the middle 80 % of its errors. None without any.
    """

    n: int
    coverage_ratio: Finite | None = None
    pinball_s: Finite | None = None
    width_s: Finite | None = None


class Wait(Struct, frozen=True, gc=False):
    """How long a job would wait, seconds: an interval of 80 %, and the median."""

    low: Finite
    median: Finite
    high: Finite


class OneMoreTold(Struct, frozen=True, kw_only=True, rename={"job_class": "class"}):
    """What one more job of a VO and a class would meet, sent here now, behind all that wait.

    Attributes:
        vo: its VO.
        job_class: its class.
        cpus: of the middle one of such jobs that came in the last days; so `estimate_s`.
        estimate_s: run time that it asks for, seconds; None: none.
        n: how many such jobs came in the last days.
        wait_s: from now to its start; None: not known, or no machine could run it.
        utility: expected unit utility of completing it, in [0, 1]: the mean over the replicates of
            its class's time utility function; None: not known, or the class has no function.
    """

    vo: str
    job_class: str
    cpus: int
    estimate_s: Finite | None
    n: int
    wait_s: Wait | None
    utility: Finite | None


class StartsFile(Struct, frozen=True, kw_only=True):
    """What stands in the file.

    Attributes:
        asked_s: up to when the site was seen, Unix seconds.
        took_s: for how long the look went on.
        problem: why nothing is said; None: it is.
        discipline: the rule that was run forward.
        compiled: whether the loops are machine code.
        jobs: by name; null: not known, a new kind of burst.
        planned: when the batch system itself expected them to start at that moment, Unix seconds,
            as far as it said so.
        scores: `submission` and `hourly`; of the questions among them to which the batch system
            itself had an answer at that moment, too: `batch_system` what that was worth, and
            `beside_batch_system` ours. A job counts for each question that was asked about it.
        candidates: the same as `jobs` under each policy that was asked about, by its name.
        candidates_asked_s: up to when the site was seen for these, Unix seconds; None: none asked.
        candidate_problems: why nothing is said of a policy, by its name.
        one_more: what one more job of each kind would meet.
        one_more_asked_s: up to when the site was seen for these, Unix seconds; None: none asked.
    """

    asked_s: Finite
    took_s: Finite = 0.0
    problem: str | None = None
    discipline: str = ""
    compiled: bool = False
    jobs: dict[str, StartTold | None] = {}
    planned: dict[str, Finite] = {}
    scores: dict[str, Score] = {}
    candidates: dict[str, dict[str, StartTold | None]] = {}
    candidates_asked_s: Finite | None = None
    candidate_problems: dict[str, str] = {}
    one_more: list[OneMoreTold] = []
    one_more_asked_s: Finite | None = None


def read(folder: Path) -> StartsFile | None:
    """What stands in the file of a state directory; None: there is none.

    Raises:
        ValueError: it is none of ours, or damaged; the message says why.
        OSError: it cannot be read.
    """
    try:
        text = read_at_most(folder / STARTS_NAME, _MOST_BYTES)
        return None if text is None else msgspec.json.decode(text, type=StartsFile)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"{folder / STARTS_NAME}: {error}") from error


def write(folder: Path, told: StartsFile) -> None:
    """Put it in the place of what stood there: whole, or not at all. Raises `OSError`."""
    write_whole(folder / STARTS_NAME, msgspec.json.encode(told) + b"\n")


# -- planned file ----------------------------------------------------------------------------------
# ``planned_starts.json``: when batch systems themselves expect waiting jobs to start, as of now.
#
# The daemon writes it for the process beside it, which holds its own answers against these. A plan
# is no event and not in the journal: it is of ten thousand jobs, and another one twice a minute.

PLANNED_NAME: Final = "planned_starts.json"
SAME_MOMENT_S: Final = 60.0
"""A plan of a moment that is further from a question than this is not held against its answer."""
_EACH_S: Final = 5.0
log = structlog.get_logger()


def planned_near(folder: Path, now_s: float) -> dict[str, float]:
    """Return when jobs are to start by the plans of about a moment, Unix seconds, by name.

    A file that cannot be read is none: the plan is only a comparison.
    """
    try:
        text = read_at_most(folder / PLANNED_NAME, _MOST_BYTES)
        plans = {} if text is None else msgspec.json.decode(text, type=dict[str, PlannedStarts])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        log.warning("planned_starts_ignored", error=str(error))
        return {}
    starts_s: dict[str, float] = {}
    for plan in plans.values():
        if abs(plan.asked_s - now_s) <= SAME_MOMENT_S:
            starts_s |= plan.starts_s
    return starts_s


async def keep_planned_starts(
    folder: Path, adapters: Callable[[], Mapping[str, Adapter]], wanted: Callable[[], bool]
) -> None:
    """Write down, for ever, what adapters know of plans, whenever one has another.

    Args:
        folder: the state directory.
        adapters: in force, by label.
        wanted: whether anybody asks about starts.
    """
    written: dict[str, PlannedStarts] = {}
    while True:
        await asyncio.sleep(_EACH_S)
        if not wanted():
            continue
        try:
            plans = {
                label: adapter.planned_starts
                for label, adapter in adapters().items()
                if isinstance(adapter.planned_starts, PlannedStarts)
            }
            if plans != written:
                await asyncio.to_thread(_write, folder, plans)
                written = plans
        except Exception as error:  # noqa: BLE001 - an adapter may be anybody's
            log.warning("planned_starts_not_saved", error=f"{type(error).__name__}: {error}")


def _write(folder: Path, plans: Mapping[str, PlannedStarts]) -> None:
    write_whole(folder / PLANNED_NAME, msgspec.json.encode(plans) + b"\n")

"""``starts.json`` in the state directory: the expected starts of waiting jobs."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from outrider.api.adapter import Adapter, PlannedStarts
from outrider.service.shapes.values import Score
from outrider.service.twin.twin_file import read_at_most, write_whole
from outrider.twin.answer_file import Finite

STARTS_NAME: Final = "starts.json"
_MAX_BYTES: Final = 64 << 20


class StartInterval(Struct, frozen=True, gc=False):
    """The expected start of a job, Unix seconds: an 80 % interval and the median.

    If the job starts in the scheduler's next cycle, all three are the time of the forecast.
    """

    low_s: Finite
    median_s: Finite
    high_s: Finite


class Wait(Struct, frozen=True, gc=False):
    """The expected wait of a job, seconds: an 80 % interval and the median."""

    low: Finite
    median: Finite
    high: Finite


class OneMoreForecast(Struct, frozen=True, kw_only=True, rename={"job_class": "class"}):
    """The forecast for one more job of a VO and a class, submitted now behind all waiting jobs.

    Attributes:
        vo: its VO.
        job_class: its class.
        cpus: CPUs of the median such job of the last days; likewise `estimate_s`.
        estimate_s: requested run time, seconds; None: none.
        n: number of such jobs in the last days.
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
    """The contents of the file.

    Attributes:
        asked_s: time up to which the site was seen, Unix seconds.
        took_s: duration of the forecast.
        problem: why there is no forecast; None: there is one.
        discipline: the scheduling rule that was simulated.
        compiled: true if the loops are machine code.
        jobs: expected starts by job name; null: not known.
        unknown: why they are not known, by job name: `no_room`, `no_history` or `new_burst`.
        planned: starts that the batch system itself expected at that moment, Unix seconds, if it
            reported any.
        scores: accuracy of the forecasts made at `submission` and `hourly`. For those to which
            the batch system itself had a plan at that moment: `batch_system` is the plan's
            accuracy, and `beside_batch_system` ours. A job counts once per forecast.
        candidates: the same as `jobs` under each evaluated policy, by its name.
        candidates_asked_s: time up to which the site was seen for these, Unix seconds; None: never.
        candidate_problems: why there is no forecast under a policy, by its name.
        one_more: forecasts for one more job of each kind.
        one_more_asked_s: time up to which the site was seen for these, Unix seconds; None: never.
    """

    asked_s: Finite
    took_s: Finite = 0.0
    problem: str | None = None
    discipline: str = ""
    compiled: bool = False
    jobs: dict[str, StartInterval | None] = {}
    unknown: dict[str, str] = {}
    planned: dict[str, Finite] = {}
    scores: dict[str, Score] = {}
    candidates: dict[str, dict[str, StartInterval | None]] = {}
    candidates_asked_s: Finite | None = None
    candidate_problems: dict[str, str] = {}
    one_more: list[OneMoreForecast] = []
    one_more_asked_s: Finite | None = None


def read(folder: Path) -> StartsFile | None:
    """Read the file in a state directory; None: there is none.

    Raises:
        ValueError: it was not written by Outrider, or is damaged; the message names the cause.
        OSError: it cannot be read.
    """
    try:
        text = read_at_most(folder / STARTS_NAME, _MAX_BYTES)
        return None if text is None else msgspec.json.decode(text, type=StartsFile)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"{folder / STARTS_NAME}: {error}") from error


def write(folder: Path, starts: StartsFile) -> None:
    """Replace the file atomically. Raises `OSError`."""
    write_whole(folder / STARTS_NAME, msgspec.json.encode(starts) + b"\n")


# -- planned file ----------------------------------------------------------------------------------
# ``planned_starts.json``: the current plans of the batch systems for their waiting jobs.
#
# The daemon writes it for the twin process, which compares its own forecasts with these. A plan is
# not an event and not in the journal: it has ten thousand jobs, and changes twice a minute.

PLANNED_NAME: Final = "planned_starts.json"
SAME_MOMENT_S: Final = 60.0
"""Most seconds between a plan and a forecast for the two to be compared."""
_INTERVAL_S: Final = 5.0
log = structlog.get_logger()


def planned_near(folder: Path, now_s: float) -> dict[str, float]:
    """Return the planned starts of jobs by plans made near a time, Unix seconds, by job name.

    A file that cannot be read counts as empty: plans are only used for comparison.
    """
    try:
        text = read_at_most(folder / PLANNED_NAME, _MAX_BYTES)
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
    """Write the adapters' plans to the file whenever one changes, until cancelled.

    Args:
        folder: the state directory.
        adapters: returns the active adapters by label.
        wanted: returns whether starts are forecast.
    """
    written: dict[str, PlannedStarts] = {}
    while True:
        await asyncio.sleep(_INTERVAL_S)
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
        except Exception as error:  # noqa: BLE001 - an adapter may be third-party code
            log.warning("planned_starts_not_saved", error=f"{type(error).__name__}: {error}")


def _write(folder: Path, plans: Mapping[str, PlannedStarts]) -> None:
    write_whole(folder / PLANNED_NAME, msgspec.json.encode(plans) + b"\n")

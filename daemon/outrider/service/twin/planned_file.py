"""``planned_starts.json``: when batch systems themselves expect waiting jobs to start, as of now.

The daemon writes it for the process beside it, which holds its own answers against these. A plan is
no event and not in the journal: it is of ten thousand jobs, and another one twice a minute.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from outrider.api.adapter import Adapter
from outrider.api.planned_starts import PlannedStarts
from outrider.service.twin.whole_file import read_at_most, write_whole

PLANNED_NAME: Final = "planned_starts.json"
SAME_MOMENT_S: Final = 60.0
"""A plan of a moment that is further from a question than this is not held against its answer."""
_MOST_BYTES: Final = 64 << 20
_EACH_S: Final = 5.0

log = structlog.get_logger()


def planned_near(folder: Path, now_s: float) -> dict[str, float]:
    """When jobs are to start by the plans of about a moment, Unix seconds, by name.

    A file that cannot be read is none: the plan is only a comparison.
    """
    try:
        text = read_at_most(folder / PLANNED_NAME, _MOST_BYTES)
        plans = {} if text is None else msgspec.json.decode(text, type=dict[str, PlannedStarts])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        log.warning("ignore_planned_starts", reason=str(error))
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
            log.warning("lose_planned_starts", reason=f"{type(error).__name__}: {error}")


def _write(folder: Path, plans: Mapping[str, PlannedStarts]) -> None:
    write_whole(folder / PLANNED_NAME, msgspec.json.encode(plans) + b"\n")

"""What the twin states of the policy that acts, when a canary trial is registered."""

from collections.abc import Mapping

from outrider.acting.trial_outcome import MEASURES
from outrider.service.config.declarations import Config, policies_of
from outrider.service.trials.registering import Stated
from outrider.service.twin.twin_file import TwinFile
from outrider.service.views.twin import expired, twin_shown
from outrider.twin.answer_file import Ratio


def stated_by(file: TwinFile | None, config: Config, now_s: float) -> Stated:
    """What the twin states of the policy that acts: its forecast, else what would have been.

    An answer that is stale, refused or about other settings states nothing, and a forecast that
    has expired is none.

    Args:
        file: what stands in `twin.json`; None: nothing.
        config: in force.
        now_s: Unix seconds, by the clock of the twin's process.
    """
    policy, shown = next(iter(policies_of(config))), twin_shown(file, config, now_s)
    if file is None or file.answer is None or shown is None or file.answer.refused is not None:
        return Stated()
    if shown["stale"] or policy in shown["other_settings"]:
        return Stated()
    coming = (file.answer.next or {}).get(policy)
    if coming is not None and expired(file) is None:
        return Stated("next", _compared(coming))
    past = file.answer.past.get(policy)
    return Stated() if past is None else Stated("past", _compared(past))


def _compared(ratios: Mapping[str, Ratio | None]) -> dict[str, dict[str, float]]:
    """Those that a trial compares."""
    told = ((measure.name, ratios.get(measure.name)) for measure in MEASURES)
    return {
        name: {"estimate": one.estimate, "low": one.low, "high": one.high}
        for name, one in told
        if one is not None
    }

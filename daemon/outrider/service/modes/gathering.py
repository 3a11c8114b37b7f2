"""Collection of the evidence from the core, the guards' window and the journal."""

import time
from collections.abc import Mapping

import msgspec

from outrider.acting.gate import ACT, Bounds, Figures, breaches
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.service.canary_trial.record import Stated
from outrider.service.canary_trial.trial import MEASURES
from outrider.service.commands.command import CommandHistory
from outrider.service.commands.evidence import WatchedTime, against, next_mode
from outrider.service.config.declarations import Config, acting_of, policies_of
from outrider.service.core.core import Core
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.modes.guard_watch import bounds_of
from outrider.service.shapes.values import (
    Evidence,
    GuardFigure,
    PolicyFigures,
    SourceFigure,
    TwinFigures,
)
from outrider.service.twin.twin_file import TwinFile
from outrider.service.views.twin import expired, twin_shown
from outrider.twin.answer_file import Ratio


def gather(
    state: DaemonState, figures: Figures, watched: WatchedTime, history: CommandHistory
) -> Evidence:
    """Return the evidence on raising the mode, with its objections.

    Args:
        state: the daemon's state.
        figures: figures of the guards' window.
        watched: how long the policies have decided.
        history: the history of the mode.
    """
    config, ceiling = state.loaded.config, state.configured.config
    acting = acting_of(ceiling)
    core = state.core
    found = Evidence(
        mode=config.mode,
        mode_since_s=history.since_s(config.mode),
        configured_mode=ceiling.mode,
        next_mode=next_mode(config.mode, ceiling.mode, acting.has_canary),
        watched_s=watched.at_least(config.mode),
        needed_s=acting.promote_after_s,
        policies=[_policy(core, runner) for runner in core.runners]
        + [
            PolicyFigures(name, 0, 0, 0, None, 0, {}, why)
            for name, why in core.policies_without_runner.items()
        ],
        guards=compared(bounds_of(acting), figures),
        sources=[
            SourceFigure(label, source.up, "" if source.up else source.down_because)
            for label, source in core.sources.items()
        ],
        trouble=_trouble(state),
        twin=twin_figures(state.view.twin.file, ceiling, time.time()),
        trial=state.view.trial(),
    )
    return msgspec.structs.replace(found, against=against(found))


def twin_figures(file: TwinFile | None, config: Config, now_s: float) -> TwinFigures | None:
    """Return the twin's results; None: there are none, and none are needed.

    Args:
        file: the content of `twin.json`.
        config: the configuration, whose policies would act.
        now_s: Unix seconds.
    """
    acting, shown = acting_of(config), twin_shown(file, config, now_s)
    if shown is None or file is None or file.answer is None:
        if not acting.promote_by_twin:
            return None
        return TwinFigures(needed=True, most_overhead_ratio=acting.promote_most_overhead_ratio)
    refused = dict(file.answer.candidates_refused)
    refused |= dict.fromkeys(shown["other_settings"], "it simulated other settings")
    if file.answer.refused is not None:
        refused = dict.fromkeys(policies_of(config), file.answer.refused)
    return TwinFigures(
        needed=acting.promote_by_twin,
        most_overhead_ratio=acting.promote_most_overhead_ratio,
        asked_s=file.asked_s,
        window=file.answer.window,
        stale=shown["stale"],
        refused=refused,
        past=file.answer.past,
    )


def compared(bounds: Bounds, figures: Figures) -> list[GuardFigure]:
    """Return each guard's figure with its bound."""
    return [
        GuardFigure(name, value, bound, bool(breaches(Bounds(**{name: bound}), figures)))
        for name, bound, value in zip(Bounds._fields, bounds, figures, strict=True)
    ]


def _policy(core: Core, runner: PolicyRunner) -> PolicyFigures:
    compared_n = runner.agreed + runner.disagreed
    verdicts = core.decision_log.gates[runner.name].verdicts
    return PolicyFigures(
        runner.name,
        runner.decisions,
        runner.agreed,
        runner.disagreed,
        runner.agreed / compared_n if compared_n else None,
        verdicts[ACT],
        {why: n for why, n in verdicts.items() if why != ACT},
        runner.broken or None,
    )


def _trouble(state: DaemonState) -> list[str]:
    """Return the problems that prevent the daemon from acting in any mode."""
    found = []
    if state.recording.failure is not None:
        found.append(f"nothing is recorded: {state.recording.failure}")
    if not state.history_read.is_set() or state.core.engine.silent:
        found.append("the history of the sources is still being read")
    elif not state.core.is_fresh and not state.core.sources_down:
        bound_s = state.core.config.stale_after_s
        found.append(f"the newest input is older than {bound_s:g} s (stale_after_s)")
    return found


# -- trial stated ----------------------------------------------------------------------------------
# The twin's statement on the acting policy when a canary trial is registered.


def stated_by(file: TwinFile | None, config: Config) -> Stated:
    """Return the twin's statement on the acting policy: its forecast, else its past.

    A result that is stale, refused or for other settings states nothing. An expired forecast
    is ignored.

    Args:
        file: the content of `twin.json`; None: there is none.
        config: the active configuration.
    """
    policy, shown = next(iter(policies_of(config))), twin_shown(file, config, time.time())
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
    """Return the ratios that a trial compares."""
    measured = ((measure.name, ratios.get(measure.name)) for measure in MEASURES)
    return {
        name: {"estimate": one.estimate, "low": one.low, "high": one.high}
        for name, one in measured
        if one is not None
    }

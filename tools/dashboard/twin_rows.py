"""Rows about the shadow twin: its answer with its age, past, forecast and fidelity."""

from typing import Final

from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import BigValueTextMode

from outrider.twin.answer import MAX_LOG_CHANGE
from tools.dashboard.expressions import known, known_samples
from tools.dashboard.now_rows import mode
from tools.dashboard.panels import (
    MOMENT,
    NONE_IS_GOOD,
    NOW,
    SPAN,
    AnyPanel,
    Query,
    Row,
    Steps,
    bars,
    figures,
    lines,
    rows_and_columns,
)
from tools.dashboard.sources import Source, only

SIMULATED: Final = (
    "In every mode; both the batch system and the policy are simulated, nothing is changed."
)
ALWAYS: Final = "In every mode."
PAST: Final = "Over the past window of the last answer: an estimate."
NEXT: Final = "Over the next window: a forecast, empty after it has expired."
INTERVAL: Final = "low and high are its 90 % interval"
AGAINST: Final = (
    "Change relative to the batch system: below zero, green, the policy uses less; "
    f"{INTERVAL}. Empty if the answer is stale or refused."
)

JOULES_A_KWH: Final = "3.6e6"
ZERO: Final[Steps] = ((None, "green"), (0, "red"))
AGREES: Final[Steps] = ((None, "red"), (1, "green"))
WITHIN: Final[Steps] = ((None, "green"), (1, "red"))
HOLDING: Final[Steps] = ((None, "red"), (-MAX_LOG_CHANGE, "green"), (MAX_LOG_CHANGE, "red"))
_ENERGY: Final = 'measure="energy"'
BOUNDS: Final = ("low", "estimate", "high")
BARE: Final = models.DynamicConfigValue("custom.lineWidth", 0)
BAND: Final = [
    BARE,
    models.DynamicConfigValue("custom.fillBelowTo", "low"),
    models.DynamicConfigValue("custom.fillOpacity", 25),
]
RUNS: Final = 'outrider_energy_joules_total{purpose=~"goodput|badput"}'


def twin_rows(source: Source) -> list[Row]:
    """Return the rows in their order on the dashboard."""
    return [_answer(), _past(source), _next(), _fidelity()]


def _ratio(answer: str, more: str) -> str:
    return known(f'outrider_twin_ratio{{answer="{answer}", {more}}}')


def _answer() -> Row:
    age = f"time() - {known('outrider_twin_asked_timestamp_seconds')}"
    window = f"{known('outrider_twin_window_timestamp_seconds')} * 1000"
    candidates = "outrider_twin_candidate_state == 1"
    return Row("The twin's answer", ALWAYS, [
        mode(),
        figures("Answer", "answered; refused: no valid estimate; failed: an error; stale: the last "
                "one is too old; none: not run yet; off.", NOW, "none",
                Query("outrider_twin_state == 1", "{{outrider_twin_state}}"),
                text=BigValueTextMode.NAME, width=4),
        figures("Age of the answer", "Time since its run began. After `stale_after_s` it is "
                "stale and not evidence.", NOW, "s", Query(age, "age"),
                width=4),
        figures("Past window", "Begin and end of the past window of the answer.", NOW,
                "dateTimeAsIso", Query(window, "{{edge}}"), width=4),
        figures("Failed runs", "Consecutive failures up to now.", NOW, "none",
                Query("outrider_twin_failed_askings", "failed"), width=4, steps=NONE_IS_GOOD),
        figures("Forecast", "holds; expired: load or waste have changed; refused: the past is "
                "too short; none.", NOW, "none",
                Query("outrider_twin_forecast_state == 1", "{{outrider_twin_forecast_state}}"),
                text=BigValueTextMode.NAME, width=4),
        figures("Candidates", "answered; refused: no valid estimate for this one; changed: "
                "settings changed since; not_asked; none: there is no answer.", NOW,
                "none", Query(candidates, "{{policy}}: {{state}}"), width=24,
                text=BigValueTextMode.NAME),
    ])  # fmt: skip


def _bound(bound: str) -> str:
    return f'bound="{bound}"'


def _side_by_side(title: str, answer: str, over: str) -> AnyPanel:
    columns = [
        Query(f"max by (measure, policy) {_ratio(answer, _bound(bound))} - 1", bound)
        for bound in BOUNDS
    ]
    return rows_and_columns(title, AGAINST, over, "percentunit", *columns, steps=ZERO)


def _band(title: str, answer: str, over: str) -> timeseries.Panel:
    """Return a chart for each policy, side by side, with its interval as a band."""
    ratio = _ratio(answer, 'measure="$measure", policy=~"$policy"')
    shows = f"{AGAINST} Each point is the last answer at that time."
    panel = lines(
        title, shows, over, "percentunit", Query(f"{ratio} - 1", "{{bound}}"), width=24,
        steps=ZERO, from_zero=False,
    )  # fmt: skip
    panel.override_by_name("low", [BARE]).override_by_name("high", BAND)
    return panel.repeat("policy").repeat_direction("h")


def _past(source: Source) -> Row:
    joules = f"sum(increase({known_samples(RUNS, '$__range')})) / {JOULES_A_KWH}"

    scaled = f"{_ratio('past', _ENERGY)} * on () group_left () ({joules})"
    return Row("Past window: estimate", SIMULATED, [
        _side_by_side("Candidates in the past window", "past", PAST),
        _band("Past window: $measure, $policy", "past", PAST),
        *only(source.has_watts, bars(
             "Energy of runs, and at each candidate's ratio", "batch system: energy of its runs on "
             "machines with known watts. The others are that times the ratio "
             f"of the past window, a scale and not another answer; {INTERVAL}.", SPAN, "kwatth",
             Query(joules, "batch system"), Query(scaled, "{{policy}} {{bound}}"), width=24)),
    ])  # fmt: skip


def _next() -> Row:
    def change(metric: str) -> str:
        now, past = (f'outrider_twin_{metric}{{when="{when}"}}' for when in ("now", "past"))
        return f"ln({known(now)} / ignoring (when) ({past} > 0))"

    return Row("Next window: forecast", SIMULATED, [
        _side_by_side("Candidates in the next window", "next", NEXT),
        _band("Next window: $measure, $policy", "next", NEXT),
        lines("Change since the forecast's past", "Logarithm of the ratio of load (busy CPUs) and "
              "of wasted share, last two weeks / past. Beyond "
              f"{MAX_LOG_CHANGE:g} in either direction the forecast expires.", MOMENT, "none",
              Query(change("load_cpus"), "load"), Query(change("waste_ratio"), "wasted share"),
              steps=HOLDING, from_zero=False),
        figures("Busy CPUs", "Mean over the past that the forecast uses, and over the last two "
                "weeks.", NOW, "none",
                Query(known("outrider_twin_load_cpus"), "{{when}}"), width=8).height(8),
        figures("Length of the next window", "Period of the forecast.", NOW, "s",
                Query(known("outrider_twin_forecast_window_seconds"), "window"),
                width=4).height(8),
    ])  # fmt: skip


def _fidelity() -> Row:
    part = "outrider_twin_fidelity_ratio"
    parts = f"{known(part)} / outrider_twin_fidelity_bound_ratio"
    delay = (
        f"{known('outrider_twin_fidelity_start_delay_seconds')} "
        "/ outrider_twin_fidelity_start_delay_bound_seconds"
    )
    yes_or_no = models.ValueMap({
        "0": models.ValueMappingResult(text="no"),
        "1": models.ValueMappingResult(text="yes"),
    })  # fmt: skip
    of_bound = (
        "Deviation of the simulated batch system from the record, as a share of its bound: beyond "
        "100 % the twin refuses."
    )
    over = "Over the past window of the last answer."
    return Row("Fidelity: simulated batch system vs. the record", SIMULATED, [
        figures("Agrees", "yes: every part is within its bound.", over, "none",
                Query(known("outrider_twin_fidelity_passed"), "agrees"), width=4, steps=AGREES,
                ).mappings([yes_or_no]),
        figures("Deviation", "Deviation of each part; machine_share_l1 is the sum of differences "
                "of machines' shares of the work.", over, "percentunit",
                Query(known(part), "{{part}}"), width=20),
        bars("Fidelity and its bounds", of_bound, over, "percentunit",
             Query(parts, "{{part}}"), Query(delay, "start delay"), width=8, steps=WITHIN),
        lines("Fidelity over time", f"{of_bound} Each point is the last answer at that time.",
              over, "percentunit", Query(parts, "{{part}}"), width=16, steps=WITHIN),
    ])  # fmt: skip

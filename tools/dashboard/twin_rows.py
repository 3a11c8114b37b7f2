"""Rows about the shadow twin: its answer and the age of it, past, forecast, and fidelity."""

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
    "In every mode; both the batch system and the policy are simulated, and nothing is changed."
)
ALWAYS: Final = "In every mode."
PAST: Final = "Over the past window of the last answer: what would have been."
NEXT: Final = "Over the next window: a forecast, empty once it has expired."
INTERVAL: Final = "low and high are its 90 % interval"
AGAINST: Final = (
    "Change against the batch system: below zero, green, the policy takes less; "
    f"{INTERVAL}. Empty where the answer is stale or refused."
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
    """The rows, in their order on the page."""
    return [_answer(), _past(source), _next(), _fidelity()]


def _ratio(answer: str, more: str) -> str:
    return known(f'outrider_twin_ratio{{answer="{answer}", {more}}}')


def _answer() -> Row:
    age = f"time() - {known('outrider_twin_asked_timestamp_seconds')}"
    window = f"{known('outrider_twin_window_timestamp_seconds')} * 1000"
    candidates = "outrider_twin_candidate_state == 1"
    return Row("The twin's answer", ALWAYS, [
        mode(),
        figures("Answer", "answered; refused: it cannot know; failed: it could not be asked; "
                "stale: the last one is too old; none: not asked yet; off.", NOW, "none",
                Query("outrider_twin_state == 1", "{{outrider_twin_state}}"),
                text=BigValueTextMode.NAME, width=4),
        figures("Age of the answer", "Since the asking began that gave it. From `stale_after_s` "
                "on it is shown as stale and is no evidence.", NOW, "s", Query(age, "age"),
                width=4),
        figures("Past window", "When the past begins and ends that the answer is about.", NOW,
                "dateTimeAsIso", Query(window, "{{edge}}"), width=4),
        figures("Askings that failed", "In a row, up to now.", NOW, "none",
                Query("outrider_twin_failed_askings", "failed"), width=4, steps=NONE_IS_GOOD),
        figures("Forecast", "holds; expired: load or waste are others now; refused: the past is "
                "too short; none.", NOW, "none",
                Query("outrider_twin_forecast_state == 1", "{{outrider_twin_forecast_state}}"),
                text=BigValueTextMode.NAME, width=4),
        figures("Candidates", "answered; refused: the twin cannot know of this one; changed: "
                "configured otherwise since; not_asked; none: there is no answer at all.", NOW,
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
    """A chart for each policy, side by side; its interval is a band."""
    ratio = _ratio(answer, 'measure="$measure", policy=~"$policy"')
    shows = f"{AGAINST} Each point is the last answer at that moment."
    panel = lines(
        title, shows, over, "percentunit", Query(f"{ratio} - 1", "{{bound}}"), width=24,
        steps=ZERO, from_zero=False,
    )  # fmt: skip
    panel.override_by_name("low", [BARE]).override_by_name("high", BAND)
    return panel.repeat("policy").repeat_direction("h")


def _past(source: Source) -> Row:
    joules = f"sum(increase({known_samples(RUNS, '$__range')})) / {JOULES_A_KWH}"

    scaled = f"{_ratio('past', _ENERGY)} * on () group_left () ({joules})"
    return Row("Past window: what would have been", SIMULATED, [
        _side_by_side("Candidates in the past window", "past", PAST),
        _band("Past window: $measure, $policy", "past", PAST),
        *only(source.has_watts, bars(
             "Energy of runs, and at each candidate's ratio", "The first is what the batch "
             "system's runs took, of machines of known watts. The others are that times the ratio "
             f"of the past window, a scale and not another answer; {INTERVAL}.", SPAN, "kwatth",
             Query(joules, "batch system"), Query(scaled, "{{policy}} {{bound}}"), width=24)),
    ])  # fmt: skip


def _next() -> Row:
    def change(metric: str) -> str:
        now, past = (f'outrider_twin_{metric}{{when="{when}"}}' for when in ("now", "past"))
        return f"ln({known(now)} / ignoring (when) ({past} > 0))"

    return Row("Next window: a forecast", SIMULATED, [
        _side_by_side("Candidates in the next window", "next", NEXT),
        _band("Next window: $measure, $policy", "next", NEXT),
        lines("Change since the forecast's past", "Logarithm of load (CPUs at work) and of the "
              "wasted share, each of the last two weeks over that of the past. Beyond "
              f"{MAX_LOG_CHANGE:g} either way the forecast expires.", MOMENT, "none",
              Query(change("load_cpus"), "load"), Query(change("waste_ratio"), "wasted share"),
              steps=HOLDING, from_zero=False),
        figures("CPUs at work", "In the mean: in the past that the forecast rests on, and in the "
                "last two weeks.", NOW, "none",
                Query(known("outrider_twin_load_cpus"), "{{when}}"), width=8).height(8),
        figures("Length of the next window", "For how long the forecast is.", NOW, "s",
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
    told = models.ValueMap({
        "0": models.ValueMappingResult(text="no"),
        "1": models.ValueMappingResult(text="yes"),
    })  # fmt: skip
    of_bound = (
        "How far the simulated batch system is off what happened, as a share of its bound: beyond "
        "100 % the twin refuses."
    )
    over = "Over the past window of the last answer."
    return Row("Fidelity: the simulated batch system against what happened", SIMULATED, [
        figures("Agrees", "Whether every part is within its bound.", over, "none",
                Query(known("outrider_twin_fidelity_passed"), "agrees"), width=4, steps=AGREES,
                ).mappings([told]),
        figures("Off by", "How far each part is off; of machine_share_l1 the sum of differences "
                "of machines' shares of the work.", over, "percentunit",
                Query(known(part), "{{part}}"), width=20),
        bars("Fidelity against its bounds", of_bound, over, "percentunit",
             Query(parts, "{{part}}"), Query(delay, "start delay"), width=8, steps=WITHIN),
        lines("Fidelity over time", f"{of_bound} Each point is the last answer at that moment.",
              over, "percentunit", Query(parts, "{{part}}"), width=16, steps=WITHIN),
    ])  # fmt: skip

"""Rows about the site: what its users and its batch system saw."""

from typing import Final

from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import BigValueTextMode

from tools.dashboard.expressions import known, known_samples, quantile, share
from tools.dashboard.panels import (
    MOMENT,
    NOW,
    SPAN,
    WINDOW,
    Query,
    Row,
    Steps,
    bars,
    figures,
    lines,
)

SEEN: Final = "As it happened at the batch system, whatever Outrider's mode."
ALWAYS: Final = "In every mode."
HOURLY: Final = "3600"
JOULES_A_KWH: Final = "3.6e6"
AGE: Final[Steps] = ((None, "green"), (60, "yellow"), (300, "red"))
WASTE: Final[Steps] = ((None, "green"), (0.3, "yellow"), (0.6, "red"))
FAIR: Final[Steps] = ((None, "red"), (0.5, "yellow"), (0.8, "green"))
UP: Final[Steps] = ((None, "red"), (1, "green"))

WAITS: Final = 'outrider_job_wait_seconds_{}{{vo=~"$vo"}}'
MACHINES: Final = 'outrider_machines{cluster=~"$cluster"}'
BUSY: Final = 'outrider_machines{state="busy", cluster=~"$cluster"}'
FREE: Final = 'outrider_machines{state="free", cluster=~"$cluster"}'
EVICTIONS: Final = 'outrider_evictions_total{cluster=~"$cluster"}'
JOULES_OF: Final = 'outrider_energy_joules_total{{purpose=~"{}", cluster=~"$cluster"}}'
IN_CLUSTERS: Final = '{cluster=~"$cluster"}'
DASHED: Final = models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 8]})


def site_rows() -> list[Row]:
    """The rows, in their order on the page."""
    return [_now(), _waits(), _energy(), _fairness(), _evictions()]


def _now() -> Row:
    up = models.ValueMap({
        "0": models.ValueMappingResult(text="down"),
        "1": models.ValueMappingResult(text="up"),
    })  # fmt: skip
    adapters = figures(
        "Adapters", "Whether each adapter reaches its source.", NOW, "none",
        Query("outrider_adapter_up", "{{adapter}}"), steps=UP,
    ).mappings([up])  # fmt: skip
    return Row("Now", ALWAYS, [
        figures("Mode", "What Outrider may do: in observe and shadow, nothing.", NOW, "none",
                Query("outrider_mode == 1", "{{outrider_mode}}"),
                text=BigValueTextMode.NAME),
        adapters,
        figures("Input age", "How old the newest information of each adapter is. "
                "Nothing acts on stale input.", NOW, "s",
                Query("outrider_input_age_seconds", "{{adapter}}"), steps=AGE),
        figures("Jobs", "Jobs known, by state.", NOW, "none",
                Query("sum by (state) (outrider_jobs)", "{{state}}")),
        lines("Jobs by state", "Jobs known, by state.", MOMENT, "none",
              Query("sum by (state) (outrider_jobs)", "{{state}}")),
        lines("Machines by state", "Machines of the chosen clusters; closed: on, without owner, "
              "but not open to jobs.", MOMENT, "none",
              Query(f"sum by (state) {known(MACHINES)}", "{{state}}"), stacked=True),
        lines("Free machines by cluster", "Machines that could take a job.", MOMENT, "none",
              Query(f"sum by (cluster) {known(FREE)}", "{{cluster}}")),
        bars("Machines that work, by cluster", "Share of a cluster's machines that run a job.",
             NOW, "percentunit",
             Query(share(f"sum by (cluster) {known(BUSY)}", f"sum by (cluster) {known(MACHINES)}"),
                   "{{cluster}}"), width=12),
    ])  # fmt: skip


def _waits() -> Row:
    total, count, buckets = (WAITS.format(part) for part in ("sum", "count", "bucket"))

    def mean(label: str, span: str) -> str:
        part, whole = (f"sum by ({label}) (increase({x}[{span}]))" for x in (total, count))
        return share(part, whole)

    return Row("Waits: from submission to first start", SEEN, [
        bars("Mean wait by class", "Jobs that have not started yet are not in it.", SPAN, "s",
             Query(mean("class", "$__range"), "{{class}}")),
        bars("Mean wait by VO", "Jobs that have not started yet are not in it.", SPAN, "s",
             Query(mean("vo", "$__range"), "{{vo}}")),
        lines("Wait by class: median, 90 and 99 %", "Within a bucket of the histogram, "
              "interpolated.", WINDOW, "s",
              *(Query(quantile(q, buckets, "$window", "class"), f"{{{{class}}}} {q:.0%}")
                for q in (0.5, 0.9, 0.99))),
        lines("Wait by VO: 90 %", "Nine of ten jobs of the VO waited less.", WINDOW, "s",
              Query(quantile(0.9, buckets, "$window", "vo"), "{{vo}}")),
        lines("Mean wait by class and VO", "No point where no job started.", WINDOW, "s",
              Query(mean("class, vo", "$window"), "{{class}} {{vo}}")),
        lines("First starts an hour", "How many waits the other panels are made of.", WINDOW,
              "none",
              Query(f"sum by (class, vo) (rate({count}[$window])) * {HOURLY}",
                    "{{class}} {{vo}}"), width=24, stacked=True),
    ])  # fmt: skip


def _energy() -> Row:
    counter = f"outrider_energy_joules_total{IN_CLUSTERS}"
    in_span = known_samples(counter, "$__range")
    in_window = known_samples(counter, "$window")
    # NaN is the one value that differs from itself.
    unknown = f"count({counter} != {counter}) or 0 * count({counter})"

    def wasted_cpu(span: str) -> str:
        bad = f"sum(increase(outrider_badput_seconds_total[{span}]))"
        return share(bad, f"({bad} + sum(increase(outrider_goodput_seconds_total[{span}])))")

    def wasted_energy(span: str) -> str:
        bad, both = (
            f"sum(increase({known_samples(JOULES_OF.format(purposes), span)}))"
            for purposes in ("badput", "badput|goodput")
        )
        return share(bad, both)

    return Row("Energy", SEEN, [
        bars("Energy by purpose", "Machines of known watts only. Goodput and badput are booked "
             "when a run ends.", SPAN, "kwatth",
             Query(f"sum by (purpose) (increase({in_span})) / {JOULES_A_KWH}", "{{purpose}}")),
        bars("Energy by cluster", "Machines of known watts only, all purposes together.", SPAN,
             "kwatth",
             Query(f"sum by (cluster) (increase({in_span})) / {JOULES_A_KWH}", "{{cluster}}")),
        lines("Mean power by purpose", "Machines of known watts only. Goodput and badput are "
              "booked when a run ends.", WINDOW, "watt",
              Query(f"sum by (purpose) (rate({in_window}))", "{{purpose}}"), stacked=True),
        lines("Power", "Measured by meters, and by the table for machines that none measures. One "
              "of them whose watts are unknown hides the table's part.", MOMENT, "watt",
              Query(known("outrider_power_watts"), "{{source}}"), stacked=True),
        lines("Wasted share in the window", "Badput over goodput and badput: of CPU time, "
              "and of energy.", WINDOW, "percentunit",
              Query(wasted_cpu("$window"), "CPU time"),
              Query(wasted_energy("$window"), "energy"), steps=WASTE),
        figures("Wasted share", "Badput over goodput and badput.", SPAN, "percentunit",
                Query(wasted_cpu("$__range"), "CPU time"),
                Query(wasted_energy("$__range"), "energy"), steps=WASTE, width=8),
        figures("Energy of open runs", "Used so far by runs that have not ended; booked as "
                "goodput or badput then.", NOW, "kwatth",
                Query(f"sum{known(f'outrider_energy_open_joules{IN_CLUSTERS}')} / {JOULES_A_KWH}",
                      "open"), width=4),
        figures("Measured by meters", "Share of the energy that meters measured; the rest is "
                "reckoned by the table of watts.", SPAN, "percentunit",
                Query(share(f"sum(increase(outrider_energy_measured_joules_total{IN_CLUSTERS}"
                            "[$__range]))", f"sum(increase({in_span}))"), "measured")),
        figures("Unknown energies", "Pairs of purpose and cluster whose watts are not known. They "
                "are left out of the panels here, not counted as zero.", NOW, "none",
                Query(unknown, "unknown"), steps=((None, "green"), (1, "yellow"))),
    ])  # fmt: skip


def _fairness() -> Row:
    got = known('outrider_vo_share_ratio{vo=~"$vo"}')
    owed = known('outrider_vo_target_ratio{vo=~"$vo"}')
    shares = lines(
        "Share and target by VO", "Share of all CPU time delivered since the beginning; dashed: "
        "the share that the VO is owed.", MOMENT, "percentunit",
        Query(got, "{{vo}}"), Query(owed, "{{vo}} target"),
    ).override_by_query("B", [DASHED])  # fmt: skip
    return Row("Fairness and shares", SEEN, [
        lines("Fairness", "1 where every VO got what it is owed. Since the beginning, and of "
              "recent use (half-life as configured).", MOMENT, "none",
              Query(known("outrider_fairness_utility_ratio"), "since the beginning"),
              Query(known("outrider_fairness_windowed_ratio"), "recent"),
              width=8, steps=FAIR, from_zero=False),
        shares.span(8),
        bars("Share less target by VO", "Above zero: got more than it is owed.", NOW,
             "percentunit", Query(f"{got} - {owed}", "{{vo}}"), width=8),
    ])  # fmt: skip


def _evictions() -> Row:
    def hourly(label: str) -> str:
        return f"sum by ({label}) (rate({EVICTIONS}[$window])) * {HOURLY}"

    return Row("Evictions: runs that ended before their job was done", SEEN, [
        lines("Evictions an hour, by reason", "What the source does not say is unknown.", WINDOW,
              "none", Query(hourly("reason"), "{{reason}}"), width=9, stacked=True),
        lines("Evictions an hour, by cluster", "Of the machine that the run was on.", WINDOW,
              "none", Query(hourly("cluster"), "{{cluster}}"), width=9, stacked=True),
        bars("Evictions by reason", "How many.", SPAN, "none",
             Query(f"sum by (reason) (increase({EVICTIONS}[$__range]))", "{{reason}}")),
    ])  # fmt: skip

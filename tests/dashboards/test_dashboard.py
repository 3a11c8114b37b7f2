"""Files of the dashboards: without mistakes, and where Grafana looks for them."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from outrider.service.metrics.declarations.evidence import EVIDENCE_METRICS
from tests.dashboards import promql
from tests.dashboards.lint import panels_of, problems, queries_of

Dashboard = dict[str, Any]
ROOT = Path(__file__).parents[2] / "dashboards"
FILES = sorted(ROOT.glob("grafana*/*.json"))
NAMES = {
    "outrider-energy", "outrider-evidence", "outrider-health", "outrider-policies",
    "outrider-site", "outrider-waiting",
}  # fmt: skip
MOST_QUERIES = 29
UNSEEN = ("outrider_machines", "outrider_energy_", "outrider_power_", "outrider_metered_")
"""Metrics that an event log without watts does not provide."""
each_dashboard = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def loaded(file: Path) -> Dashboard:
    """Return the contents of a file."""
    read: Dashboard = json.loads(file.read_text())
    return read


def named(name: str) -> Dashboard:
    """Return the dashboard of this name, of the kind with all panels."""
    return loaded(ROOT / "grafana" / f"{name}.json")


@pytest.fixture
def dashboard() -> Dashboard:
    """Return the dashboard of the site."""
    return named("outrider-site")


@pytest.fixture
def evidence() -> Dashboard:
    """Return the dashboard of the evidence."""
    return named("outrider-evidence")


def variables_of(dashboard: Dashboard) -> dict[str, dict[str, Any]]:
    """Return the variables that can be chosen at the top."""
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


@each_dashboard
def test_nothing_is_wrong_with_it(file: Path) -> None:
    dashboard = loaded(file)
    assert len(panels_of(dashboard)) > 5
    assert problems(dashboard) == []


@each_dashboard
def test_it_asks_little(file: Path) -> None:
    """A repeated chart needs its queries once more for each further chosen policy."""
    assert len(queries_of(loaded(file))) <= MOST_QUERIES


@each_dashboard
def test_it_shows_the_mode_its_changes_and_the_way_to_the_others(file: Path) -> None:
    dashboard = loaded(file)
    first, *_ = panels_of(dashboard)
    assert (first["title"], first["gridPos"]["y"]) == ("Mode", 1)
    assert [target["legendFormat"] for target in first["targets"]] == ["{{outrider_mode}}"]
    [note] = dashboard["annotations"]["list"]
    assert note["enable"]
    assert note["titleFormat"] == "Mode: {{outrider_mode}}"
    assert list(promql.errors(note["expr"])) == []
    others, alerts, _, own_page = dashboard["links"]
    assert (others["type"], others["tags"]) == ("dashboards", dashboard["tags"])
    assert alerts["url"] == "$docs/alerts.html"
    assert own_page["url"] == "http://$instance/"
    assert (ROOT.parent / "docs" / "alerts.md").is_file()
    assert {"datasource", "instance", "docs"} <= set(variables_of(dashboard))


def test_each_has_a_name_of_its_own() -> None:
    names = [loaded(file)["uid"] for file in FILES]
    assert sorted(names) == sorted([*NAMES, *(f"{name}-event-log" for name in NAMES)])
    titles = [loaded(file)["title"] for file in FILES]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_beside_an_event_log_what_cannot_have_data_is_absent_and_all_else_there(name: str) -> None:
    whole = {panel["title"]: panel for panel in panels_of(named(name))}
    log = loaded(ROOT / "grafana-event-log" / f"{name}-event-log.json")
    there = {panel["title"] for panel in panels_of(log)}
    assert there <= set(whole)

    def cannot(target: dict[str, Any]) -> bool:
        return any(use.name.startswith(UNSEEN) for use in promql.uses(target["expr"]))

    absent = {title for title, p in whole.items() if all(map(cannot, p["targets"]))}
    assert set(whole) - there >= absent
    for title in set(whole) - there - absent:
        assert any(map(cannot, whole[title]["targets"])), title
    assert not any(map(cannot, queries_of(log)))


def test_evidence_and_waiting_show_each_metric_of_the_evidence(evidence: Dashboard) -> None:
    asked = {
        use.name
        for dashboard in (evidence, named("outrider-waiting"))
        for target in queries_of(dashboard)
        for use in promql.uses(target["expr"])
    }
    assert [metric.name for metric in EVIDENCE_METRICS if metric.full_name not in asked] == []


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("outrider-site", {"cluster"}),
        ("outrider-waiting", {"vo", "class"}),
        ("outrider-energy", {"cluster"}),
        ("outrider-policies", {"policy"}),
    ],
)
def test_it_can_be_narrowed(name: str, choices: set[str]) -> None:
    dashboard = named(name)
    variables = variables_of(dashboard)
    assert {n for n, variable in variables.items() if variable["includeAll"]} == choices
    for choice in choices:
        variable = variables[choice]
        assert (variable["multi"], variable["allValue"]) == (True, ".*")
        assert any(f'=~"${choice}"' in target["expr"] for target in queries_of(dashboard))


def test_candidates_stand_side_by_side_each_with_its_interval_as_a_band(
    evidence: Dashboard,
) -> None:
    repeated = [panel for panel in panels_of(evidence) if panel.get("repeat")]
    assert [panel["title"] for panel in repeated] == [
        "Past window: $measure, $policy", "Next window: $measure, $policy"
    ]  # fmt: skip
    for panel in repeated:
        assert (panel["repeat"], panel["repeatDirection"]) == ("policy", "h")
        assert [target["legendFormat"] for target in panel["targets"]] == ["{{bound}}"]
        [(upper, lower)] = [
            (override["matcher"]["options"], changed["value"])
            for override in panel["fieldConfig"]["overrides"]
            for changed in override["properties"]
            if changed["id"] == "custom.fillBelowTo"
        ]
        assert (upper, lower) == ("high", "low")


def without_its_legend(evidence: Dashboard) -> None:
    charts = [panel for panel in panels_of(evidence) if panel.get("repeat")]
    charts[0]["targets"][0]["legendFormat"] = "of {{policy}}"


def for_each_vo(evidence: Dashboard) -> None:
    [charts, *_] = [panel for panel in panels_of(evidence) if panel.get("repeat")]
    charts["repeat"] = "vo"


def with_a_column_of_no_query(evidence: Dashboard) -> None:
    [table, *_] = [panel for panel in panels_of(evidence) if panel["type"] == "table"]
    table["targets"].pop()


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (without_its_legend, "the band ends at low, which no query is called"),
        (for_each_vo, "there is no variable $vo"),
        (with_a_column_of_no_query, "the column Value #C is of no query"),
    ],
)
def test_broken_evidence_is_told(
    evidence: Dashboard, break_it: Callable[[Dashboard], None], message: str
) -> None:
    break_it(evidence)
    assert any(problem.endswith(message) for problem in problems(evidence)), problems(evidence)


def first(dashboard: Dashboard) -> dict[str, Any]:
    target: dict[str, Any] = panels_of(dashboard)[0]["targets"][0]
    return target


def ask(expression: str) -> Callable[[Dashboard], None]:
    """Put another query into the first panel."""
    return lambda dashboard: first(dashboard).update(expr=expression)


def spoil(**changes: object) -> Callable[[Dashboard], None]:
    """Change the first panel by a function."""
    return lambda dashboard: panels_of(dashboard)[0].update(changes)


def without_unit(dashboard: Dashboard) -> None:
    del panels_of(dashboard)[0]["fieldConfig"]["defaults"]["unit"]


def without_thresholds(dashboard: Dashboard) -> None:
    panels_of(dashboard)[0]["fieldConfig"]["defaults"]["thresholds"]["steps"] = []


def with_one_ref_twice(dashboard: Dashboard) -> None:
    targets = panels_of(dashboard)[0]["targets"]
    targets.append(dict(targets[0]))


def with_another_data_source(dashboard: Dashboard) -> None:
    first(dashboard)["datasource"] = {"type": "prometheus", "uid": "mine"}


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (ask("outrider_jobs_total"), "outrider_jobs_total is no declared metric"),
        (ask("outrider_job_wait_seconds"), "outrider_job_wait_seconds is no declared metric"),
        (ask('outrider_jobs{cluster="a"}'), "outrider_jobs has no label cluster"),
        (ask("sum by (reason) (outrider_jobs)"), "outrider_jobs has no label reason"),
        (ask("sum(rate(outrider_jobs[5m]))"), "rate() over outrider_jobs, which is no counter"),
        (
            ask("increase((outrider_power_watts > 0)[1h:])"),
            "increase() over outrider_power_watts, which is no counter",
        ),
        (
            ask("rate(outrider_reward_sum[5m])"),
            "rate() over outrider_reward_sum, which is no counter",
        ),
        (
            ask("delta(outrider_badput_seconds_total[5m])"),
            "delta() over outrider_badput_seconds_total, which is a counter: a restart would show",
        ),
        (ask('outrider_jobs{state=~"$states"}'), "there is no variable $states"),
        (ask("outrider_jobs"), "outrider_jobs is asked of all sites at once"),
        (ask("outrider_jobs"), "the legend names outrider_mode, which no metric of the query has"),
        (spoil(title=""), "no title"),
        (spoil(description=""), "no description"),
        (spoil(targets=[]), "no query"),
        (spoil(gridPos={"x": 6, "y": 1, "w": 6, "h": 4}), "lies on Mode"),
        (spoil(gridPos={"x": 20, "y": 999, "w": 6, "h": 4}), "beyond the right edge"),
        (spoil(id=3), "id 3 is there 2 times"),
        (without_unit, "no unit"),
        (without_thresholds, "no thresholds: Grafana would show red from 80 on"),
        (with_one_ref_twice, "refId A is there 2 times"),
        (lambda d: first(d).update(refId=""), "a query without refId"),
        (lambda d: first(d).update(legendFormat=""), "query A has no legend"),
        (with_another_data_source, "query A does not ask the chosen data source"),
    ],
    ids=lambda value: value.replace(" ", "-")[:50] if isinstance(value, str) else "",
)
def test_a_broken_dashboard_is_told(
    dashboard: Dashboard, break_it: Callable[[Dashboard], None], message: str
) -> None:
    broken = copy.deepcopy(dashboard)
    break_it(broken)
    assert any(problem.endswith(message) for problem in problems(broken)), problems(broken)


def test_labels_named_after_the_brackets_are_not_passed_over(dashboard: Dashboard) -> None:
    ask("sum(outrider_jobs) by (nothing)")(dashboard)
    with pytest.raises(ValueError, match=r"write sum by \(label\) \(vector\)"):
        problems(dashboard)


@pytest.mark.parametrize("kind", ["grafana", "grafana-event-log"])
def test_grafana_is_told_where_the_dashboards_are(kind: str) -> None:
    (file,) = (ROOT / kind / "provisioning" / "dashboards").iterdir()
    shown = yaml.safe_load(file.read_text())
    assert shown["apiVersion"] == 1
    (provider,) = shown["providers"]
    assert provider["type"] == "file"
    path = Path(provider["options"]["path"])
    assert path.parts[-2:] == ("dashboards", kind), "the wheel puts these below share/outrider"


def test_grafana_is_told_whom_to_ask(dashboard: Dashboard) -> None:
    file = ROOT / "grafana" / "provisioning" / "datasources" / "outrider.yml"
    (source,) = yaml.safe_load(file.read_text())["datasources"]
    assert source["type"] == dashboard["templating"]["list"][0]["query"] == "prometheus"
    scrape = yaml.safe_load((ROOT / "prometheus" / "scrape.example.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scrape["scrape_configs"][0]["scrape_interval"]

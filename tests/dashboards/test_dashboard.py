"""The dashboards' files: without mistakes, and where Grafana looks for them."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from outrider.service.metrics.declarations.evidence import EVIDENCE_METRICS
from tests.dashboards import promql
from tests.dashboards.lint import panels_of, problems

Dashboard = dict[str, Any]


@pytest.fixture
def grafana(repository: Path) -> Path:
    return repository / "dashboards" / "grafana"


def loaded(file: Path) -> Dashboard:
    """What stands in a file."""
    read: Dashboard = json.loads(file.read_text())
    return read


@pytest.fixture
def dashboard(grafana: Path) -> Dashboard:
    return loaded(grafana / "outrider-site.json")


@pytest.fixture
def evidence(grafana: Path) -> Dashboard:
    return loaded(grafana / "outrider-evidence.json")


def test_nothing_is_wrong_with_them(dashboard: Dashboard, evidence: Dashboard) -> None:
    assert len(panels_of(dashboard)) > 40
    assert problems(dashboard) == []
    assert len(panels_of(evidence)) > 20
    assert problems(evidence) == []


def test_each_has_a_name_of_its_own(grafana: Path) -> None:
    names = [loaded(file)["uid"] for file in grafana.glob("*.json")]
    assert sorted(names) == ["outrider-evidence", "outrider-site"]


def test_evidence_shows_each_metric_of_the_evidence(evidence: Dashboard) -> None:
    asked = {
        use.name
        for panel in panels_of(evidence)
        for target in panel["targets"]
        for use in promql.uses(target["expr"])
    }
    assert [metric.name for metric in EVIDENCE_METRICS if metric.full_name not in asked] == []


def test_candidates_stand_side_by_side_each_with_its_interval_as_a_band(
    evidence: Dashboard,
) -> None:
    repeated = [panel for panel in panels_of(evidence) if panel.get("repeat")]
    assert [panel["title"] for panel in repeated] == [
        "Past window: $measure, $policy", "Next window: $measure, $policy"
    ]  # fmt: skip
    for panel in repeated:
        assert (panel["repeat"], panel["repeatDirection"]) == ("policy", "h")
        legends = {target["refId"]: target["legendFormat"] for target in panel["targets"]}
        [(upper, lower)] = [
            (override["matcher"]["options"], changed["value"])
            for override in panel["fieldConfig"]["overrides"]
            for changed in override["properties"]
            if changed["id"] == "custom.fillBelowTo"
        ]
        assert (legends[upper], lower) == ("high", "low")


def without_its_lower_end(evidence: Dashboard) -> None:
    charts = [panel for panel in panels_of(evidence) if panel.get("repeat")]
    charts[0]["targets"][0]["legendFormat"] = "lowest"


def for_each_vo(evidence: Dashboard) -> None:
    [charts, *_] = [panel for panel in panels_of(evidence) if panel.get("repeat")]
    charts["repeat"] = "vo"


def with_a_column_of_no_query(evidence: Dashboard) -> None:
    [table, *_] = [panel for panel in panels_of(evidence) if panel["type"] == "table"]
    table["targets"].pop()


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (without_its_lower_end, "the band ends at low, which no query is called"),
        (for_each_vo, "there is no variable $vo"),
        (with_a_column_of_no_query, "the column Value #C is of no query"),
    ],
)
def test_broken_evidence_is_told(
    evidence: Dashboard, break_it: Callable[[Dashboard], None], told: str
) -> None:
    break_it(evidence)
    assert any(problem.endswith(told) for problem in problems(evidence)), problems(evidence)


def test_it_can_be_narrowed_to_clusters_vos_and_policies(dashboard: Dashboard) -> None:
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert list(variables) == ["datasource", "cluster", "vo", "policy", "window"]
    for name in ("cluster", "vo", "policy"):
        variable = variables[name]
        assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (
            True, True, ".*",
        )  # fmt: skip
        assert any(f'=~"${name}"' in t["expr"] for p in panels_of(dashboard) for t in p["targets"])


def first(dashboard: Dashboard) -> dict[str, Any]:
    target: dict[str, Any] = panels_of(dashboard)[0]["targets"][0]
    return target


def ask(expression: str) -> Callable[[Dashboard], None]:
    """Put another query into the first panel."""
    return lambda dashboard: first(dashboard).update(expr=expression)


def spoil(**changes: object) -> Callable[[Dashboard], None]:
    """Change the first panel."""
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
    ("break_it", "told"),
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
    dashboard: Dashboard, break_it: Callable[[Dashboard], None], told: str
) -> None:
    broken = copy.deepcopy(dashboard)
    break_it(broken)
    assert any(problem.endswith(told) for problem in problems(broken)), problems(broken)


def test_labels_named_after_the_brackets_are_not_passed_over(dashboard: Dashboard) -> None:
    ask("sum(outrider_jobs) by (nothing)")(dashboard)
    with pytest.raises(ValueError, match=r"write sum by \(label\) \(vector\)"):
        problems(dashboard)


def test_grafana_is_told_where_the_dashboard_is_and_whom_to_ask(
    grafana: Path, dashboard: Dashboard
) -> None:
    folder = grafana / "provisioning"
    shown = yaml.safe_load((folder / "dashboards" / "outrider.yml").read_text())
    assert shown["apiVersion"] == 1
    (provider,) = shown["providers"]
    assert provider["type"] == "file"
    path = Path(provider["options"]["path"])
    assert path.parts[-2:] == grafana.parts[-2:], "the wheel puts dashboards/ below share/outrider"

    asked = yaml.safe_load((folder / "datasources" / "outrider.yml").read_text())
    (source,) = asked["datasources"]
    assert source["type"] == dashboard["templating"]["list"][0]["query"] == "prometheus"
    scrape = yaml.safe_load((grafana.parent / "prometheus" / "scrape.example.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scrape["scrape_configs"][0]["scrape_interval"]

"""Forecasts for one more job: in the file and at the endpoint, only while they are valid."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.forecast.one_more import Kind, OneMore
from outrider.model.jobs import JobSpec
from outrider.service.config.loaded import load_config
from outrider.service.core.core import Core
from outrider.service.twin import starts_cycle as module
from outrider.service.twin import starts_file
from outrider.service.twin.starts_cycle import OneMoreCycle, StartsCycle
from outrider.service.twin.starts_file import OneMoreForecast, StartsFile, Wait
from outrider.service.twin.watch import FRESH_S, TwinWatch
from outrider.service.views.status import utility
from tests.fixtures.cores import T, core_of
from tests.fixtures.plain import plain
from tests.service.twin.conftest import MakeSite
from tests.service.twin.test_starts_cycle import waiting_until_the_end
from tests.service.twin.test_starts_shown import shown

ONE = OneMoreForecast(
    vo="cms", job_class="batch", cpus=4, estimate_s=600.0, n=7, wait_s=Wait(1.0, 2.0, 9.0),
    utility=0.5,
)  # fmt: skip
PLAIN = {
    "vo": "cms", "class": "batch", "cpus": 4, "estimate_s": 600.0, "n": 7,
    "wait_s": {"low": 1.0, "median": 2.0, "high": 9.0}, "utility": 0.5,
}  # fmt: skip


def cycle_of(site_config: Path, **fields: Any) -> OneMoreCycle:
    return OneMoreCycle(lambda: load_config(site_config), **fields)


def found(*ones: OneMore) -> Any:
    """Replace the forecast's simulation."""

    def ask(*_: Any) -> Iterator[OneMore]:
        yield from ones

    return ask


class Followed:
    now_s = T


def test_the_file_of_a_look_has_each_kind_with_its_utility(
    make_site: MakeSite, tmp_path: Path
) -> None:
    config = make_site().config
    path, now_s, _ = waiting_until_the_end(tmp_path / "journal.sqlite")
    cycle = StartsCycle(
        tmp_path, path, lambda: 60.0, clock=lambda: now_s, one_more=cycle_of(config)
    )
    cycle.look()
    told = starts_file.read(tmp_path)
    assert told is not None
    assert told.problem is None
    assert told.one_more_asked_s == now_s
    [one] = told.one_more  # all are of one VO and class
    assert one.n > 100
    if one.wait_s is not None:
        assert 0.0 <= one.wait_s.low <= one.wait_s.median <= one.wait_s.high


@pytest.mark.parametrize(
    ("job_class", "worth"), [("batch", pytest.approx(0.5)), ("unheard of", None)]
)
def test_the_utility_is_the_mean_of_what_the_class_makes_of_each_replicate(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, job_class: str, worth: Any
) -> None:
    site = make_site()
    text = '[utilities.batch]\nshape = "step"\nslack_s = 100.0\n'
    site.config.write_text(site.config.read_text() + text)
    kind = Kind("cms", job_class, JobSpec(vo="cms", cpus=4), 7)
    late = OneMore(kind, np.array([0.0, 50.0, 300.0]), np.array([50.0, 300.0]), np.full(2, 60.0))
    unknown = OneMore(kind, None, np.empty(0), np.empty(0))
    monkeypatch.setattr(module, "one_more", found(late, unknown))
    cycle = cycle_of(site.config)
    assert cycle.look(Followed(), None, "strict")  # type: ignore[arg-type]
    first, second = cycle.forecasts
    assert first.utility == worth
    assert first.wait_s == Wait(0.0, 50.0, 300.0)
    assert (second.wait_s, second.utility) == (None, None)


def test_a_look_is_followed_by_a_rest_and_a_fault_leaves_nothing_told(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, site = [0.0], make_site()
    kind = Kind("cms", "batch", JobSpec(vo="cms"), 7)

    def slow(*_: Any) -> Iterator[OneMore]:
        now_s[0] += 2.0
        yield OneMore(kind, None, np.empty(0), np.empty(0))

    monkeypatch.setattr(module, "one_more", slow)
    cycle = cycle_of(site.config, clock=lambda: now_s[0])
    assert cycle.look(Followed(), None, "strict")  # type: ignore[arg-type]
    assert (len(cycle.forecasts), cycle.asked_s) == (1, T)
    now_s[0] = 21.0
    assert not cycle.look(Followed(), None, "strict")  # type: ignore[arg-type]
    monkeypatch.setattr(module, "one_more", lambda *_: 1 / 0)
    now_s[0] = 22.0
    assert cycle.look(Followed(), None, "strict")  # type: ignore[arg-type]
    assert (cycle.forecasts, cycle.asked_s) == ([], None)


def test_where_each_takes_long_the_rarest_are_left_out(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, kinds = [0.0], [Kind("cms", f"class {n}", JobSpec(vo="cms"), 9 - n) for n in range(9)]

    def slow(*_: Any) -> Iterator[OneMore]:
        for kind in kinds:
            now_s[0] += 7.0
            yield OneMore(kind, None, np.empty(0), np.empty(0))

    monkeypatch.setattr(module, "one_more", slow)
    cycle = cycle_of(make_site().config, clock=lambda: now_s[0])
    assert cycle.look(Followed(), None, "strict")  # type: ignore[arg-type]
    assert [one.job_class for one in cycle.forecasts] == ["class 0", "class 1", "class 2"]


def seen(folder: Path, now_s: float = T, **fields: Any) -> dict[str, Any]:
    """Return the endpoint's answer for a file."""
    starts_file.write(folder, StartsFile(**{"asked_s": T, "one_more": [ONE], **fields}))
    watch = TwinWatch(folder)
    watch.look()
    starts = shown(watch, now_s)
    told = plain(utility(starts_core(now_s), starts))["one_more_job"]
    assert isinstance(told, dict)
    return told


def starts_core(now_s: float) -> Core:
    core = core_of("log")
    core.site.now = now_s
    return core


def test_the_endpoint_tells_it_for_as_long_as_it_holds(tmp_path: Path) -> None:
    assert seen(tmp_path, one_more_asked_s=T) == {
        "asked_s": T, "not_said": None, "kinds": [PLAIN]
    }  # fmt: skip
    old = seen(tmp_path, T + FRESH_S + 60.0, one_more_asked_s=T)
    assert old == {"asked_s": T, "not_said": "the last answer is 16 min old", "kinds": []}
    never = seen(tmp_path, one_more_asked_s=None)
    assert never["not_said"] == "no forecast has been computed yet"
    assert never["kinds"] == []
    broken = seen(tmp_path, one_more_asked_s=T, problem="the journal is damaged")
    assert (broken["not_said"], broken["kinds"]) == ("the journal is damaged", [])

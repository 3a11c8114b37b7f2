"""The adapter of each job: only its levers may change the job."""

import pytest

from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.core import decision_log
from outrider.service.core.decision_log import JobSources


def submitted(*names: str) -> list[NamedEvent]:
    return [(1.0, ev.SUBMITTED, name, JobSpec()) for name in names]


def test_a_job_is_of_the_adapter_with_levers_that_told_of_it() -> None:
    sources = JobSources(["pool", "cluster"], dict)
    sources.note("log of the pool", submitted("ap#1.0", "ap#2.0"))
    sources.note("pool", submitted("ap#1.0"))
    sources.note("cluster", [*submitted("c:7"), (2.0, ev.OWNER_CAME, "m1", None)])
    found = {name: sources.label_of(name) for name in ("ap#1.0", "ap#2.0", "c:7", "m1")}
    assert found == {"ap#1.0": "pool", "ap#2.0": None, "c:7": "cluster", "m1": None}


def test_a_number_that_was_used_again_is_of_the_same_adapter() -> None:
    sources = JobSources(["cluster"], dict)
    sources.note("cluster", submitted("c:7"))
    assert sources.label_of("c:7#1700000000") == "cluster"


def test_what_is_known_outlives_a_restart_but_not_its_adapter() -> None:
    before = JobSources(["pool", "cluster"], dict)
    before.note("pool", submitted("ap#1.0"))
    before.note("cluster", submitted("c:7"))
    after = JobSources(["cluster", "another"], dict)
    after.restore(before.save())
    assert [after.label_of(name) for name in ("ap#1.0", "c:7")] == [None, "cluster"]


def test_jobs_that_left_are_forgotten_in_time_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "_SPARE", 10)
    there = {"a": None, "b": None}
    sources = JobSources(["pool"], lambda: there)
    sources.note("pool", submitted("a", "b", *map(str, range(22))))
    sources.note("pool", submitted("the newest"))  # it has not entered the engine yet
    assert {*there, "the newest"} <= {n for n in (*there, "the newest") if sources.label_of(n)}
    assert sources.label_of("0") is None
    assert len(sources.save()["pool"]) <= 12

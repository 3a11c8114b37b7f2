"""Functions of `import outrider`: loaded lazily, typed, and with errors that name the fix."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outrider
from outrider.api import NOWHERE, Choice, Job, Orders, Policy, SiteView
from outrider.formats.workload import Workload
from outrider.model.errors import (
    ConfigurationError,
    MissingPackageError,
    PolicyError,
    TraceError,
)
from outrider.python_api.records import Fields, Run
from outrider.python_api.replaying import compare

COSTLY = ("numpy", "click", "msgspec", "scipy", "sklearn", "sqlite3", "aiohttp", "asyncio")
NAMES = {
    "read_swf", "read_campus", "generate_campus", "generate_grid", "replay", "compare", "ingest",
    "open_journal",
}  # fmt: skip


class LongestFirst(Orders, Policy):
    """Policy of this file, which is not a plugin."""

    name, description, api_version = "longest_first", "the longest estimate first", 1

    def order(self, job: Job, view: SiteView) -> float:
        return -(job.spec.estimate_s or 0.0)


@pytest.fixture(scope="module")
def grid() -> Workload:
    """Generate a small grid."""
    return outrider.generate_grid(3, row=0.2, jobs=200, machines=4)


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_it_costs_nothing() -> None:
    loaded = in_a_fresh_process("import outrider, sys; print(*sys.modules)").split()
    assert "outrider" in loaded
    assert not [name for name in loaded if name.startswith(("outrider.", "outrider_"))]
    assert not set(COSTLY) & set(loaded)


def test_every_name_is_there_whatever_was_imported_before() -> None:
    printed = in_a_fresh_process(
        "import outrider.replay.run, outrider\n"
        "from outrider import replay\n"
        "print(*(callable(getattr(outrider, n)) for n in outrider.__all__ if n[0] != '_'))\n"
        "print(replay(outrider.generate_grid(1, row=.2, jobs=20)).jobs['completed'])"
    )
    assert printed.split() == ["True"] * len(NAMES) + ["20"]


def test_the_names_are_those_of_the_types() -> None:
    assert set(outrider.__all__) == NAMES | {"__version__"}
    assert set(dir(outrider)) >= NAMES
    types = Path(outrider.__file__).with_suffix(".pyi").read_text()
    for name in NAMES:
        assert f"import {name} as {name}\n" in types
    with pytest.raises(AttributeError, match="has no attribute 'relpay'"):
        _ = outrider.relpay  # type: ignore[attr-defined]


def test_every_argument_is_documented() -> None:
    functions = [getattr(outrider, name) for name in NAMES - {"replay", "compare"}]
    from outrider.python_api.replaying import replay

    for function in (*functions, replay, compare):
        documentation = inspect.getdoc(function) or ""
        for name in inspect.signature(function).parameters:
            assert name in documentation, f"{function.__name__} does not document {name}"


def test_a_run_has_every_field_as_an_attribute(grid: Workload) -> None:
    of_workloads = {
        "cpus", "interactive_below_s", "vo_column", "group_vos_below", "utilities",
    }  # fmt: skip
    run = outrider.replay(grid)
    assert set(run) == set(Run.__annotations__)
    assert set(run) <= set(dir(run))
    on_campus = outrider.replay(outrider.generate_campus(1, weeks=0.2, machines=5))
    assert set(on_campus) == set(Run.__annotations__) - of_workloads
    with pytest.raises(AttributeError, match="has no field 'wait'; it has trace, policy"):
        _ = run.wait
    assert repr(run).startswith("<run of fifo on grid.swf: mean wait ")


def test_a_policy_that_is_no_plugin_can_be_replayed(grid: Workload) -> None:
    run = outrider.replay(grid, policy=LongestFirst, estimates="exact")
    shortest = outrider.replay(grid, policy="sjf", estimates="exact")
    assert run.policy == "longest_first"
    assert run.wait_s["all"]["mean"] > shortest.wait_s["all"]["mean"]


def test_records_are_there_as_often_as_wanted(grid: Workload) -> None:
    run = outrider.replay(grid)
    rows = list(run.job_rows)
    assert list(run.job_rows) == rows
    assert len(rows) == 200
    assert list(rows[0]) == run.job_rows.columns
    mean = sum(row["wait_s"] for row in rows) / len(rows)
    assert mean == pytest.approx(run.wait_s["all"]["mean"])
    with pytest.raises(ConfigurationError, match="jobs=True"):
        _ = outrider.replay(grid, jobs=False).job_rows


def test_a_package_that_is_not_there_is_named_with_its_extra(
    grid: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = outrider.replay(grid).job_rows
    for package, frame in (
        ("pyarrow", rows.to_arrow), ("pandas", rows.to_pandas), ("polars", rows.to_polars),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingPackageError, match=rf"{package} .*'outrider\[frames\]'"):
            frame()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discipline": "eazy"}, 'discipline "eazy"'),
        ({"estimates": "none"}, "--estimates"),
        ({"vo": "user"}, r"expected outrider.read_swf\(path, vo=\.\.\.\)"),
        ({"settings": {"speed": 1}}, "speed"),
        ({"shares": {"1": 0.4}}, "shares"),
        ({"seed": "a"}, "seed = 'a'; expected a whole number, 0 or more"),
        ({"seed": 1.5}, "seed = 1.5; expected"),
        ({"machines": 2.5}, "machines = 2.5; expected a whole number, 1 or more"),
        ({"machines": 0}, "machines = 0; expected"),
        ({"until_s": "x"}, "until_s = 'x'; expected seconds, 0 or more"),
        ({"until_s": -1.0}, "until_s = -1.0; expected seconds, 0 or more"),
        ({"interactive_below_s": float("nan")}, "interactive_below_s = nan; expected"),
        ({"shares": {"1": "half"}}, r'shares\["1"\] = \'half\'; expected a number'),
        ({"utilities": {"interactiv": "linear"}}, 'did you mean "interactive"'),
    ],
)
def test_what_is_wrong_is_refused(grid: Workload, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        outrider.replay(grid, **options)


class Nameless(Policy):
    """Policy without the declarations that every policy needs."""


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (3, "policy = 3; expected the name of an installed policy, or a class"),
        (int, "policy = <class 'int'>; expected"),
        (Nameless, 'policy Nameless has no name; expected name = "..."'),
    ],
)
def test_what_is_no_policy_is_refused(grid: Workload, policy: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        outrider.replay(grid, policy)


def test_what_is_no_trace_is_refused() -> None:
    no_trace: Any = 3
    with pytest.raises(ConfigurationError, match="trace = 3; expected a path, or what"):
        outrider.replay(no_trace)


class Waiting(Policy):
    """Policy that defers every job indefinitely."""

    name, description, api_version = "waiting", "nobody starts", 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        if may_defer:
            return Choice(NOWHERE, "later")
        return super().choose(job, evaluation, view, may_defer)


class WaitingAWeek(Waiting):
    """Policy that defers every job for at most a week."""

    name = "waiting_a_week"
    max_defer_s = 7 * 86_400.0


def test_a_run_in_which_all_jobs_are_deferred_for_ever_ends_with_an_error() -> None:
    few = outrider.generate_grid(3, row=0.2, jobs=20, machines=4)
    with pytest.raises(
        PolicyError, match=r"waiting.* defers all .* never starts them \(20\).* 182 days"
    ):
        outrider.replay(few, Waiting)
    assert outrider.replay(few, WaitingAWeek).jobs["completed"] == 20
    for days in (1, 300):
        assert outrider.replay(few, Waiting, until_s=days * 86_400.0).jobs["completed"] == 0


class OneAtATime(Policy):
    """Policy that defers while any machine is busy."""

    name, description, api_version = "one_at_a_time", "the next once all is idle", 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        if view.free_total < 2:
            return Choice(NOWHERE, "later")
        return super().choose(job, evaluation, view, may_defer)


def test_a_run_longer_than_half_a_year_is_waited_for(tmp_path: Path) -> None:
    file, days_300 = tmp_path / "two.swf", 300 * 86_400
    row = "{} 0 0 {} 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
    file.write_text("; MaxProcs: 2\n" + row.format(1, days_300) + row.format(2, 10))
    assert outrider.replay(file, OneAtATime).jobs["completed"] == 2


def test_a_number_of_numpys_is_a_seed_like_any_other(grid: Workload) -> None:
    of_numpy: Any = np.int64(3)
    assert outrider.replay(grid, "random_match", seed=of_numpy).seed == 3


def test_what_compare_cannot_hand_to_other_processes_is_refused(grid: Workload) -> None:
    in_memory: Any = grid
    for traces in (in_memory, [in_memory]):
        with pytest.raises(ConfigurationError, match="traces: a Workload in memory; expected"):
            outrider.compare(traces, "sjf")
    classes: Any = [LongestFirst]
    with pytest.raises(ConfigurationError, match="LongestFirst'> is not a name; expected"):
        outrider.compare("grid.swf", classes)
    with pytest.raises(ConfigurationError, match="seed = -1; expected"):
        outrider.compare("grid.swf", "sjf", seeds=[-1])


def test_no_log_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ingest: no file is given"):
        outrider.ingest()


def test_a_document_shows_what_it_has() -> None:
    assert repr(Fields({"jobs": {}, "wait_s": {}})) == "<Fields with jobs, wait_s>"


def test_traces_that_are_not_there_are_named(tmp_path: Path) -> None:
    for read in (outrider.read_swf, outrider.read_campus, outrider.replay):
        with pytest.raises(TraceError, match="nowhere: there is no such file or folder"):
            read(tmp_path / "nowhere")


def test_a_campus_has_no_use_for_what_is_of_workloads() -> None:
    campus = outrider.generate_campus(1, weeks=0.2, machines=5)
    with pytest.raises(ConfigurationError, match="a campus names its machines"):
        outrider.replay(campus, machines=3)
    with pytest.raises(ConfigurationError, match="no scheduler of its own"):
        outrider.replay(campus, policy="recorded")


def test_too_few_cpus_for_a_job_are_refused() -> None:
    workload = outrider.generate_grid(3, like="vengerov", rate=0.1, length_s=500)
    with pytest.raises(TraceError, match="machines = 10; expected"):
        outrider.replay(workload, machines=10)

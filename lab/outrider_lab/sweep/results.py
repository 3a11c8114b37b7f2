"""Results of a sweep: one flat row a run, as JSON or Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec

from outrider.formats.tables import require_duckdb, write_parquet
from outrider.model.errors import ConfigurationError, LedgerError, nearest
from outrider_lab.comparison.difference import compared
from outrider_lab.reporting.claims import FEWEST_SEEDS, interval_of
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import GeneratedCampus, WorkloadFile, WorkloadWindow
from outrider_lab.sweep.workload_run import DEFAULT

Row = dict[str, Any]
"""Scalars by column name, or None where there is no value."""
FORMATS: Final = (".json", ".parquet")
_FIRST: Final = ("cell", "trace", "policy", "preset", "seed", "error", "attempts", "version")
_DESCRIBED: Final = ("truth", "estimates", "discipline", "class_source", "cpus")


def flat(report: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Return every scalar of a report under its path: ``wait_s.all.mean``.

    Lists are left out, except those that are settings: they are there as JSON text.

    >>> dict(flat({"seed": 1, "wait_s": {"all": {"mean": 2.5}}, "by_week": [1, 2]}))
    {'seed': 1, 'wait_s.all.mean': 2.5}
    """
    for name, value in report.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        elif not isinstance(value, (list, tuple)):
            yield path + name, value
        elif path.startswith("settings."):
            yield path + name, msgspec.json.encode(value).decode()


def check_format(out: Path) -> None:
    """Refuse what could not be written, before a long run.

    Raises:
        ConfigurationError: another ending than `FORMATS`, no such folder, or no duckdb.
    """
    if out.suffix not in FORMATS:
        raise ConfigurationError(f"--out {out}: expected it to end in {' or '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}")
    if out.suffix == ".parquet":
        _duckdb()


def read_row(line: bytes, place: str) -> Row:
    """Return a row from its JSON. Raises `LedgerError`, which names the place."""
    try:
        row: Row = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{place}: no row of a sweep: {error}") from error
    return _checked(row, place)


def _checked(row: Row, place: str) -> Row:
    missing = [name for name in _FIRST if name not in row]
    if missing:
        raise LedgerError(f"{place}: no row of a sweep: it has no {', '.join(missing)}")
    return row


def read_rows(out: Path) -> list[Row]:
    """Return the rows of a file of results. Raises `LedgerError`, `ConfigurationError`."""
    if out.suffix == ".parquet":
        return _read_parquet(out)
    try:
        rows = msgspec.json.decode(out.read_bytes(), type=list[msgspec.Raw])
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{out}: no results of a sweep: {error}") from error
    return [read_row(bytes(row), f"{out} row {n}") for n, row in enumerate(rows, 1)]


def write_rows(out: Path, rows: Sequence[Row]) -> None:
    """Write rows as JSON (a list of objects) or Parquet, by the file's ending.

    Every row has every column. The file is there whole or not at all.
    """
    names = dict.fromkeys(_FIRST) | dict.fromkeys(name for row in rows for name in row)
    columns = sorted(names, key=_place)
    full = [{name: row.get(name) for name in columns} for row in rows]
    part = out.with_name(f".{out.name}.part")
    if out.suffix == ".parquet":
        write_parquet(part, full, _duckdb())
    else:
        lines = map(msgspec.json.encode, full)
        part.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")
    part.replace(out)


def _place(name: str) -> int:
    """Return the order of a column: the run, its terms and labels, settings, figures."""
    if name in _FIRST:
        return 0
    if name in _DESCRIBED or name.startswith("asked."):
        return 1
    return 2 if name.startswith("settings.") else 3


def _duckdb() -> Any:
    return require_duckdb("--out", ".json")


def _read_parquet(out: Path) -> list[Row]:
    duckdb = _duckdb()
    try:
        with duckdb.connect() as connection:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(out)])
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    except duckdb.Error as error:
        raise LedgerError(f"{out}: no results of a sweep: {error}") from error
    for row in rows:
        _checked(row, str(out))
        row |= {name: "inf" for name, value in row.items() if value == inf}
    return rows


# -- differences -----------------------------------------------------------------------------------
# What a sweep says of its treatments: each against a baseline on the same traces, with intervals.
#
# A treatment is a policy with its settings and, on a workload, what it is told and may do
# (estimates, discipline, classes, machines). The unit of an interval is a trace: a campus, a
# workload file, or a window of one. Seeds of a trace are averaged first and count as one; a trace
# is counted only where both ran it.

FIGURES: Final = {
    "campuses": ("wait_s.all.mean", "energy_wh.badput"),
    "workloads": ("wait_s.all.mean", "bounded_slowdown.all.mean"),
}
"""Default columns by kind of trace; less is better in each. One that no run has is left out."""


class Treatment(NamedTuple):
    """Treatment to compare with the baseline; all but the policy are None on a campus.

    Attributes:
        machines: None: those of the file's header.
        class_by: None: what its users said best.
    """

    policy: PolicySpec
    estimates: str | None = None
    discipline: str | None = None
    class_by: str | None = None
    machines: int | None = None

    def __str__(self) -> str:
        """Describe the treatment in words: ``fifo, easy, lognormal:1, 128 machines``."""
        estimates = self.estimates if self.estimates != DEFAULT else None
        cpus = None if self.machines is None else f"{self.machines} machines"
        words = (str(self.policy), self.discipline, estimates, self.class_by, cpus)
        return ", ".join(word for word in words if word is not None)


Measured = dict[Treatment, dict[Any, dict[int, float]]]
"""A figure by treatment, trace and seed."""


def check_baseline(specs: Sequence[RunSpec], baseline: str) -> None:
    """Check that a run of a sweep is of this policy. Raises `ConfigurationError`."""
    policies = list(dict.fromkeys(spec.policy.policy for spec in specs))
    if baseline not in policies:
        raise ConfigurationError(
            f"--baseline {baseline}: not in this sweep; {nearest(baseline, policies)}"
        )


def differences(
    specs: Sequence[RunSpec],
    rows: Sequence[Row],
    figures: Sequence[str] = (),
    baseline: str | None = None,
) -> list[dict[str, Any]]:
    """Return every treatment against the baseline, for each figure; campuses apart from workloads.

    Args:
        specs: of the sweep.
        rows: its results, in the same order; of failed ones nothing is counted.
        figures: columns of the results, less of which is better; empty: `FIGURES`.
        baseline: name of a policy; its first treatment is the baseline. None: the first of all.

    Returns:
        figure, of (campuses, workloads), unit (in words), baseline, and treatments, each with
        treatment (in words) and its parts, truth (what of it was told; empty: nothing), traces
        (how many), runs, mean (over traces of the mean over seeds), and against the baseline pairs
        (traces that both ran), difference (mean over them), interval (95 %, Student's t over
        them; None: fewer than two), verdict.

    Raises:
        ConfigurationError: no run has the figure.
    """
    out = []
    for figure in figures or dict.fromkeys(name for names in FIGURES.values() for name in names):
        found = list(_of_figure(figure, specs, rows, baseline, bool(figures)))
        done = next((row for row in rows if row["error"] is None), None)
        if figures and not found and done is not None:
            numbers = [name for name, value in done.items() if isinstance(value, int | float)]
            right = nearest(figure, numbers)
            raise ConfigurationError(f"--figure {figure}: no run has such a number; {right}")
        out += found
    return out


def _of_figure(
    figure: str, specs: Sequence[RunSpec], rows: Sequence[Row], baseline: str | None, chosen: bool
) -> Iterator[dict[str, Any]]:
    for kind, usual in FIGURES.items():
        if not chosen and figure not in usual:
            continue
        measured: Measured = {}
        truths: dict[Treatment, dict[str, None]] = {}
        here = []
        for spec, row in zip(specs, rows, strict=True):
            value = row.get(figure)
            if _kind(spec) != kind or not isinstance(value, int | float):
                continue
            treatment = _treatment(spec)
            measured.setdefault(treatment, {}).setdefault(_unit(spec), {})[spec.seed] = value
            labels = truths.setdefault(treatment, {})
            if row["truth"]:
                labels[row["truth"]] = None
            here.append(spec)
        first = [t for t in measured if baseline in (None, t.policy.policy)]
        if not first:
            continue
        yield {
            "figure": figure,
            "of": kind,
            "unit": _unit_in_words(here),
            "baseline": str(first[0]),
            "treatments": [_row(t, first[0], measured, "; ".join(truths[t])) for t in measured],
        }


def _row(ours: Treatment, other: Treatment, measured: Measured, truth: str) -> dict[str, Any]:
    here, there = measured[ours], measured[other]
    paired = list(_paired(here, there)) if ours != other else []
    found = interval_of(paired)
    return {
        "treatment": str(ours),
        "policy": str(ours.policy),
        "estimates": ours.estimates,
        "discipline": ours.discipline,
        "class_by": ours.class_by,
        "machines": ours.machines,
        "truth": truth,
        "traces": len(here),
        "runs": sum(map(len, here.values())),
        "mean": fmean(fmean(by_seed.values()) for by_seed in here.values()),
        "pairs": len(paired),
        "difference": fmean(paired) if paired else None,
        "interval": found,
        "verdict": None if ours == other else compared(found, len(paired), FEWEST_SEEDS),
    }


def _paired(
    here: Mapping[Any, Mapping[int, float]], there: Mapping[Any, Mapping[int, float]]
) -> Iterator[float]:
    """Return ours less theirs on each trace of both: the mean over the seeds of both."""
    for unit, by_seed in here.items():
        both = by_seed.keys() & there.get(unit, {}).keys()
        if both:
            yield fmean(by_seed[seed] - there[unit][seed] for seed in sorted(both))


def _kind(spec: RunSpec) -> str:
    return "workloads" if isinstance(spec.trace, WorkloadFile | WorkloadWindow) else "campuses"


def _treatment(spec: RunSpec) -> Treatment:
    if not isinstance(spec.trace, WorkloadFile | WorkloadWindow):
        return Treatment(spec.policy)
    file = spec.trace.file if isinstance(spec.trace, WorkloadWindow) else spec.trace
    return Treatment(
        spec.policy,
        spec.option("estimates"),
        spec.option("discipline"),
        None if file.class_by is None else file.class_by.source,
        file.machines,
    )


def _unit(spec: RunSpec) -> Any:
    """Return what two treatments need in common to be a pair: the same jobs."""
    trace = spec.trace
    if isinstance(trace, WorkloadWindow):
        return trace.file.path, trace.file.vo, trace.first_day, trace.days
    return (trace.path, trace.vo) if isinstance(trace, WorkloadFile) else trace


def _unit_in_words(specs: Sequence[RunSpec]) -> str:
    names = {
        WorkloadWindow: "a window of a workload file",
        GeneratedCampus: "a generated campus",
    }
    of_files = isinstance(specs[0].trace, WorkloadFile)
    usual = "a workload file" if of_files else "a campus"
    kinds = {names.get(type(spec.trace), usual) for spec in specs}
    unit = kinds.pop() if len(kinds) == 1 else "a trace"
    seeds = len({spec.seed for spec in specs})
    return f"{unit} (the mean of its {seeds} seeds)" if seeds > 1 else unit

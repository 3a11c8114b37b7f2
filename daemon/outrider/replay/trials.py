"""Trials: a trace under one policy with one seed, and the resulting run object."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from math import isinf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from outrider.api.policy import Policy
from outrider.formats.campus.campus import Campus
from outrider.formats.tables import format_of, write_rows
from outrider.formats.workload import Workload
from outrider.journal import LedgerFile, LedgerHash
from outrider.model.errors import ConfigurationError
from outrider.model.modes import FIRST_FIT, STRICT
from outrider.plugins.finding import make_estimator, make_policy
from outrider.replay.grid_run import RECORDED, GridRun, RecordedRun
from outrider.replay.job_table import JobTable
from outrider.replay.run import CampusRun, Keep, TraceRun, both, hashed, hashed_and_written
from outrider.replay.workload_terms import WorkloadTerms
from outrider.simulation.estimates import LEARNED, REQUESTED, estimated, oracle_used
from outrider.simulation.recorded_site import jobs_with_waits

# -- effective settings ----------------------------------------------------------------------------
# Settings of a policy as they took effect, for reports.


def effective_settings(policy: Policy, reconsider_s: float) -> dict[str, Any]:
    """Return every setting by name, as plain data.

    Args:
        policy: whose settings.
        reconsider_s: the effective decision epoch, seconds; it replaces the policy's own.

    Returns:
        Values for JSON; an infinite one is the text ``inf``.
    """
    settings: dict[str, Any] = msgspec.to_builtins(policy.settings)
    if "reconsider_s" in settings:
        settings["reconsider_s"] = reconsider_s
    return {
        name: "inf" if isinstance(value, float) and isinf(value) else value
        for name, value in settings.items()
    }


# -- traces ----------------------------------------------------------------------------------------
# Traces by their paths: a campus is a folder, a workload a file.

Trace = Campus | Workload


def read_trace(path: Path, terms: WorkloadTerms, skip_bad: bool = False) -> Trace:
    """Read a campus folder, or a workload file in Standard Workload Format.

    Args:
        path: of either.
        terms: options for workload files.
        skip_bad: skip bad rows and count them, instead of refusing them.

    Raises:
        TraceError: the trace cannot be read.
        ConfigurationError: an option about its classes does not fit it.
    """
    if path.is_dir():
        from outrider.formats.campus.files import read_campus

        return read_campus(path, skip_bad=skip_bad)
    from outrider.formats.swf.reading import read_swf

    return read_swf(
        path,
        machines=terms.machines,
        class_by=terms.class_by,
        vo=terms.vo,
        group_vos_below=terms.group_vos_below,
        skip_bad=skip_bad,
    )


def notes_on(trace: Trace, shares: Iterable[str]) -> list[str]:
    """Return notes on a workload: what its reader did, and VOs of `shares` without jobs."""
    if isinstance(trace, Campus):
        return []
    strangers = sorted(set(shares) - set(trace.vo))
    note = f"--shares: no job belongs to {', '.join(strangers)}"
    return [*trace.notes, *([note] if strangers else [])]


# -- trials ----------------------------------------------------------------------------------------

ACTING = "active"
"""Mode of a replay's ledger rows: the policy of the run acts on the simulated site."""
OBSERVED = "observe"
"""Mode of the rows of a recorded schedule: no policy of Outrider decided."""
_NONE: Mapping[str, Any] = {}


class Terms(NamedTuple):
    """Common options of all trials of one command.

    Attributes:
        settings: given settings, by policy.
        presets: the requested preset, by policy.
        until_s: stop after this second of the trace; None: at its end.
        shares: fair shares by VO; empty: equal.
        workload: options for traces that are workloads.
        kinds: classes of policies that are not installed plugins, by name.
    """

    settings: Mapping[str, dict[str, Any]]
    presets: Mapping[str, str | None]
    until_s: float | None = None
    shares: Mapping[str, float] = _NONE
    workload: WorkloadTerms = WorkloadTerms()
    kinds: Mapping[str, type[Policy]] = _NONE

    def make(self, name: str, seed: int) -> Policy | None:
        """Return a new policy; None for `RECORDED`. Raises `ConfigurationError`, `PluginError`."""
        where = f"--set {name}"
        if name == RECORDED:
            if self.settings[name] or self.presets[name]:
                raise ConfigurationError(
                    f"{where}: it is what the trace's own scheduler did, and has no settings"
                )
            return None
        kind = self.kinds.get(name)
        return make_policy(name, self.settings[name], seed, where, self.presets[name], kind)


class Trial(NamedTuple):
    """Trial: one trace under one policy with one seed.

    Attributes:
        ledger: file for its ledger; None: none.
        jobs: file for its table of jobs; None: none.
    """

    trace: str
    policy: str
    seed: int
    ledger: Path | None
    jobs: Path | None = None


def run_trial(
    trial: Trial,
    trace: Trace,
    terms: Terms,
    progress: Callable[[float], None] | None = None,
    table: JobTable | None = None,
) -> dict[str, Any]:
    """Run one trial and return its run object.

    Args:
        trial: the run.
        trace: named by `Trial.trace`.
        terms: of the command.
        progress: called periodically with the ratio of trace time that has passed.
        table: has a row for each job afterwards; None: only if `Trial.jobs` asks for it.

    Returns:
        The run as in reports, with `preset`, `until_s` and `ledger`; for a workload also the
        effective options of `Terms.workload`.

    Raises:
        ConfigurationError, PluginError: the policy cannot be made, or `until_s` is too early.
        TraceError: the trace does not record what its own scheduler did.
        LedgerError: the ledger cannot be written.
    """
    policy = terms.make(trial.policy, trial.seed)
    if policy is None and isinstance(trace, Workload):
        jobs_with_waits(trace)  # refused before a ledger file is begun
    until_s = stop_s(trace, terms)
    digest = LedgerHash()
    with ExitStack() as stack:
        keep = hashed(digest, trace)
        ledger = None
        if trial.ledger is not None:
            ledger = stack.enter_context(LedgerFile(trial.ledger))
            keep = hashed_and_written(digest, trace, ledger, ACTING if policy else OBSERVED)
        if table is None and trial.jobs is not None:
            table = JobTable(trace.job_names)
        if table is not None:
            keep = both(keep, table.decided)
        if policy is not None:
            policy.wants_scores = trial.ledger is not None
        run = run_of(trial, trace, policy, terms, until_s, keep)
        about: dict[str, Any] = {
            "trace": trial.trace,
            "policy": trial.policy,
            "settings": effective_settings(policy, run.runners[0].reconsider_s) if policy else {},
            "seed": trial.seed,
            "preset": terms.presets[trial.policy],
            "until_s": until_s,
            "discipline": run.runners[0].discipline if run.runners else None,
        }
        if isinstance(trace, Workload):
            about |= _conditions(trace, terms.workload)
        else:
            about |= _conditions_on_campus(trace, terms.workload)
        run.job_table = table
        if ledger is not None:
            run.keep_outcomes(ledger.add_outcome, trace)
        measured = run.run(progress)
        if trial.jobs is not None and table is not None:
            write_rows(table.as_rows(), trial.jobs, format_of(trial.jobs, None, "--jobs"), "--jobs")
        if ledger is not None:
            ledger.meta |= about
    place = None if trial.ledger is None else str(trial.ledger)
    return about | measured | {"ledger_sha256": digest.hexdigest(), "ledger": place}


def run_of(
    trial: Trial, trace: Trace, policy: Policy | None, terms: Terms, until_s: float | None,
    keep: Keep,
) -> TraceRun:  # fmt: skip
    """Return the run of a trial, not yet started.

    Args:
        trial: its seed is that of the estimates, where they are drawn.
        trace: named by `Trial.trace`.
        policy: the acting policy, already made; None: the trace's own scheduler.
        terms: of the command.
        until_s: stop after this second of the trace; None: at its end.
        keep: called for every decision.
    """
    shares, asked = dict(terms.shares), terms.workload
    rule = asked.estimates_of(trace) if isinstance(trace, Workload) else asked.estimates
    learned = rule is not None and rule.kind == LEARNED
    estimator = make_estimator(LEARNED, trial.seed, "--estimates") if learned else None
    if isinstance(trace, Campus):
        return CampusRun(
            trace, [policy] if policy else [], keep, until_s, shares=shares,
            discipline=asked.discipline or FIRST_FIT, estimator=estimator,
        )  # fmt: skip
    workload = estimated(trace, asked.estimates_of(trace), trial.seed)
    if policy is None:
        return RecordedRun(
            workload, [], keep, until_s, shares=shares, utilities=asked.utilities,
            short_below_s=asked.short_below_s,
        )  # fmt: skip
    return GridRun(
        workload, [policy], keep, until_s, shares=shares, utilities=asked.utilities,
        discipline=asked.discipline or STRICT, estimator=estimator,
        short_below_s=asked.short_below_s,
    )  # fmt: skip


def stop_s(trace: Trace, terms: Terms) -> float | None:
    """Return the second to stop at. Raises `ConfigurationError` if before the first job."""
    until_s = terms.until_s
    if until_s is None:
        return None
    if isinstance(trace, Campus):  # a campus ends, and nothing is beyond its end
        return min(until_s, trace.span_s)
    first_s = float(trace.submit_s[0])
    if until_s < first_s:
        raise ConfigurationError(
            f"--until {until_s:g}: the first job of {trace.name} comes at {first_s:.15g} s; use a "
            "later second of the trace's own time"
        )
    return until_s


def _conditions(workload: Workload, asked: WorkloadTerms) -> dict[str, Any]:
    """Return the effective options of a workload, as in the run object."""
    rule = asked.estimates_of(workload)
    return {
        "cpus": sum(machine.cpus for machine in workload.machines),
        "class_source": workload.class_source,
        "estimates": rule.word,
        "truth": oracle_used(workload.class_source, rule.word),
        "interactive_below_s": asked.short_below_s,
        "vo_column": workload.vo_column,
        "group_vos_below": workload.group_vos_below,
        "utilities": list(asked.declared),
    }


def _conditions_on_campus(campus: Campus, asked: WorkloadTerms) -> dict[str, Any]:
    """Return sources of classes and estimates: never the truth; no estimates: None."""
    estimates = None if campus.estimate_s is None else REQUESTED
    if asked.estimates is not None and asked.estimates.kind == LEARNED:
        estimates = LEARNED
    return {"class_source": "none", "estimates": estimates, "truth": []}


def plan(
    trace: str,
    policies: list[str],
    seeds: range,
    several_traces: bool,
    ledger: Path | None,
    jobs: Path | None = None,
) -> Iterator[Trial]:
    """Yield the trials of one trace, each with its own files where some are wanted."""
    several = several_traces or len(policies) * len(seeds) > 1
    front = f"-{Path(trace).resolve().name}" if several_traces else ""
    for policy in policies:
        for seed in seeds:
            own = f"{front}-{policy}-{seed}" if several else ""
            yield Trial(trace, policy, seed, _named(ledger, own), _named(jobs, own))


def _named(file: Path | None, more: str) -> Path | None:
    """Return the file with a suffix to the stem of its name."""
    return None if file is None else file.with_name(f"{file.stem}{more}{file.suffix}")

"""Replay of a trace under a policy, and comparison of policies, for the Python API."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import numpy as np

from outrider.api.policy import Policy
from outrider.formats.campus.campus import Campus
from outrider.formats.workload import Workload, one_cpu_machines, one_pool
from outrider.model.errors import ConfigurationError, PluginError, TraceError
from outrider.python_api.reading import check_seconds, seed_of, shares_of, terms_of
from outrider.python_api.records import Fields, Records, Run
from outrider.replay.grid_run import RECORDED
from outrider.replay.job_table import JobTable
from outrider.replay.trials import Terms, Trace, Trial, read_trace, run_trial
from outrider.replay.workload_terms import WorkloadTerms

_OF_READING = ("class_by", "vo", "group_vos_below")


def replay(
    trace: Trace | Path | str,
    policy: str | type[Policy] = "fifo",
    *,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    preset: str | None = None,
    machines: int | None = None,
    estimates: str | None = None,
    discipline: str | None = None,
    class_by: str | None = None,
    interactive_below_s: float | None = None,
    vo: str | None = None,
    group_vos_below: float | None = None,
    shares: Mapping[str, float] | None = None,
    utilities: Mapping[str, str] | None = None,
    until_s: float | None = None,
    ledger: Path | str | None = None,
    jobs: bool = True,
    skip_bad: bool = False,
) -> Run:
    """Run a trace under a policy, with exactly the figures of ``outrider replay``.

    Args:
        trace: a campus or a workload, or the path of a campus folder or a workload file.
        policy: the name of an installed policy, ``recorded`` for what the scheduler of a workload
            file did, or the class of a policy that is not installed.
        seed: for the policy's random draws, and for the estimates'.
        settings: of the policy, by name.
        preset: a named bundle of its settings; `settings` take precedence.
        machines: of workloads: one-CPU machines, or CPUs of the pool where jobs are parallel.
        estimates: run times that policies see: ``exact``, ``requested``, ``lognormal:SIGMA`` or
            ``learned``; for a campus ``requested`` or ``learned``.
        discipline: the rule by which jobs may pass one that does not fit: ``first_fit``,
            ``strict``, ``easy`` or ``conservative``. None: strict; of a campus first_fit.
        class_by: as in `outrider.read_swf`; only for a path.
        vo: as in `outrider.read_swf`; only for a path.
        group_vos_below: as in `outrider.read_swf`; only for a path.
        interactive_below_s: the run groups waits by whether a job ran strictly less, in seconds.
        shares: fair shares by VO, summing to 1; None: equal.
        utilities: utility of completing a job, by class, such as ``{"batch": "linear:zero_at=3"}``.
        until_s: stop after this second of the trace.
        ledger: file for every decision with its scores, and every outcome with its reward.
        jobs: keep a record for each job (`Run.job_rows`); that takes time on long queues.
        skip_bad: only for a path: skip bad rows and count them.

    Returns:
        The run. Its field `trace` is the given path, or the name of the trace.

    Raises:
        ConfigurationError: an argument or a setting is wrong, or does not fit the trace.
        PluginError: there is no such policy, or it cannot be made.
        PolicyError: the policy violates a rule of the site, or fails.
        TraceError: the trace cannot be read.
        LedgerError: the ledger cannot be written.
    """
    seed = seed_of(seed)
    if until_s is not None:
        check_seconds("until_s", until_s)
    terms = terms_of(
        machines=machines, class_by=class_by, interactive_below_s=interactive_below_s, vo=vo,
        group_vos_below=group_vos_below, estimates=estimates, discipline=discipline,
        utilities=utilities,
    )  # fmt: skip
    name, kinds = _named(policy)
    asked = Terms(
        {name: dict(settings or {})}, {name: preset}, until_s, shares_of(shares), terms, kinds
    )
    asked.make(name, seed)  # check the policy before a trace is read
    found, label = trace_of(trace, terms, skip_bad)
    if not isinstance(found, Workload):
        terms.refuse_for_campus(label)
        if name == RECORDED:
            raise ConfigurationError(f"policy {RECORDED}: a campus has no scheduler of its own")
    table = JobTable(found.job_names) if jobs else None
    trial = Trial(label, name, seed, None if ledger is None else Path(ledger))
    document = run_trial(trial, found, asked, table=table)
    return Run(document, None if table is None else Records(table.as_rows().table, table.rows))


def _named(policy: Any) -> tuple[str, dict[str, type[Policy]]]:
    """Return the name of a policy, and its class if given. Raises `ConfigurationError`."""
    if isinstance(policy, str):
        return policy, {}
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise ConfigurationError(
            f"policy = {policy!r}; expected the name of an installed policy, or a class that "
            "is based on outrider.api.Policy"
        )
    name = getattr(policy, "name", None)
    if not isinstance(name, str):
        raise ConfigurationError(
            f'policy {policy.__name__} has no name; expected name = "..." in its class'
        )
    return name, {name: policy}


def trace_of(trace: Trace | Path | str, terms: WorkloadTerms, skip_bad: bool) -> tuple[Trace, str]:
    """Return the trace with its label: the given path, or its name.

    Args:
        trace: the trace, or its path.
        terms: options about it.
        skip_bad: for a path: skip bad rows and count them.

    Raises:
        ConfigurationError: an option does not fit it.
        TraceError: it cannot be read, or does not exist.
    """
    if isinstance(trace, str | Path):
        if not Path(trace).exists():
            raise TraceError(f"{trace}: there is no such file or folder")
        if Path(trace).is_dir():
            terms.refuse_for_campus(str(trace))
        return read_trace(Path(trace), terms, skip_bad), str(trace)
    if isinstance(trace, Workload):
        for word in _OF_READING:
            if word in terms.given:
                raise ConfigurationError(
                    f"{word}: is decided when a file is read; expected "
                    f"outrider.read_swf(path, {word}=...)"
                )
        if terms.machines is not None:
            return _with_machines(trace, terms.machines), trace.name
    elif not isinstance(trace, Campus):
        raise ConfigurationError(
            f"trace = {trace!r}; expected a path, or what outrider.read_swf, read_campus or "
            "generate_... gave"
        )
    return trace, trace.name


def _with_machines(workload: Workload, cpus: int) -> Workload:
    """Return the workload on other machines, as if read so. Raises `TraceError`."""
    from dataclasses import replace

    widest = int(np.max(workload.cpus, initial=1))
    if widest > cpus:
        raise TraceError(
            f"{workload.name}: a job asks for {widest} CPUs, and machines = {cpus}; expected "
            f"{widest} or more"
        )
    names, machines = one_pool(cpus) if workload.is_parallel else one_cpu_machines(cpus)
    return replace(workload, machine_names=names, machines=machines)


# -- comparing -------------------------------------------------------------------------------------
# `outrider.compare`: policies job by job, by the lab, which is a separate package.

GROUP: Final = "outrider.functions"
"""Entry points of functions of the Python API that are in other packages."""


def compare(
    traces: Path | str | Iterable[Path | str],
    policies: Sequence[str] | str,
    *,
    baseline: str = "fifo",
    seeds: Iterable[int] = (0,),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    presets: Mapping[str, str] | None = None,
    machines: int | None = None,
    estimates: str | None = None,
    discipline: str | None = None,
    class_by: str | None = None,
    interactive_below_s: float | None = None,
    vo: str | None = None,
    group_vos_below: float | None = None,
    shares: Mapping[str, float] | None = None,
    utilities: Mapping[str, str] | None = None,
    block_s: float | None = None,
    workers: int = 1,
) -> Fields:
    """Compare policies on workload files, job by job, as ``outrider compare --json`` does.

    Args:
        traces: path of a workload file, or several.
        policies: a name, or several; the published baselines are always compared, too.
        baseline: the policy that all others are compared with.
        seeds: for the random draws of policies and of estimates.
        settings: of policies, by policy and name.
        presets: by policy.
        machines: CPUs, in place of the header's.
        estimates: run times that policies see, as in `outrider.replay`.
        discipline: the rule by which jobs may pass one that does not fit; None: strict.
        class_by: what makes a job interactive, as in `outrider.read_swf`.
        interactive_below_s: figures are grouped by whether a job ran strictly less, in seconds.
        vo: the column that says which VO a job belongs to.
        group_vos_below: VOs with a smaller share of the requests than this are merged.
        shares: fair shares by VO, summing to 1; None: equal.
        utilities: utility of completing a job, by class, as in `outrider.replay`.
        block_s: seconds of submissions that are drawn together for the intervals; None: chosen
            from the waits.
        workers: number of processes; 1: this one only. With more, a script needs the usual
            ``if __name__ == "__main__":``.

    Returns:
        The document: `settings`, `traces` (policies with their differences and 95 % intervals),
        `over_traces`, and `failed`: runs that failed, each with its error.

    Raises:
        ConfigurationError, PluginError: an argument, a policy or a setting is wrong, or the lab is
            not installed.
        TraceError: a trace cannot be read.
    """
    paths = _paths(traces)
    asked = [policies] if isinstance(policies, str) else policies
    names = tuple(dict.fromkeys((*asked, baseline)))
    for name in names:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"policies: {name!r} is not a name; expected that of an installed policy, which "
                "other processes can find, too (outrider.replay takes a class)"
            )
    for what, given in (("settings", settings), ("presets", presets)):
        strangers = sorted(set(given or {}) - set(names))
        if strangers:
            raise ConfigurationError(f"{what}: {strangers[0]} is not one of the compared policies")
    terms = terms_of(
        machines=machines, class_by=class_by, interactive_below_s=interactive_below_s, vo=vo,
        group_vos_below=group_vos_below, estimates=estimates, discipline=discipline,
        utilities=utilities,
    )  # fmt: skip
    function = _function("compare")
    document: dict[str, Any] = function(
        paths,
        {name: (dict((settings or {}).get(name, {})), (presets or {}).get(name)) for name in names},
        baseline, [seed_of(seed) for seed in seeds], terms, shares_of(shares), block_s, workers,
    )  # fmt: skip
    return Fields(document)


def _paths(traces: Any) -> list[str]:
    """Return paths of workload files. Raises `ConfigurationError` for a trace in memory."""
    is_one = isinstance(traces, str) or not isinstance(traces, Iterable)
    given = [traces] if is_one else list(traces)
    for trace in given:
        if not isinstance(trace, str | Path):
            raise ConfigurationError(
                f"traces: a {type(trace).__name__} in memory; expected the path of a "
                "workload file, which other processes can read, too (outrider.replay takes "
                "traces in memory)"
            )
    return [str(path) for path in given]


def _function(name: str) -> Any:
    """Return a function of another package. Raises `PluginError`."""
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise PluginError(
            f"{name}: no installed package has it under the entry points {GROUP}; install "
            "Outrider's own lab again"
        )
    return found[0].load()

"""The comparison as the Python API calls it, found by the entry points ``outrider.functions``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outrider.model.errors import ConfigurationError, OutriderError
from outrider.replay.grid_run import RECORDED
from outrider.replay.workload_terms import WorkloadTerms
from outrider_lab.comparison.comparison import Comparison
from outrider_lab.comparison.watched_run import Conditions
from outrider_lab.running.run_all import execute_run, run_study
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.workers import Finished


def study_of(
    traces: Sequence[str],
    policies: Mapping[str, tuple[Mapping[str, Any], str | None]],
    baseline: str,
    seeds: Sequence[int],
    terms: WorkloadTerms,
    shares: Mapping[str, float],
    block_s: float | None,
) -> Comparison:
    """Return the study of a comparison, checked.

    Args:
        traces: paths of workload files.
        policies: settings and preset by name, the baseline among them.
        baseline: the policy that all others are held against.
        seeds: of the policies' chance and of the estimates'.
        terms: what is asked of the traces.
        shares: fair shares by VO; empty: equal.
        block_s: see `Comparison`.

    Raises:
        ConfigurationError, PluginError: a policy or a setting is wrong.
        TraceError: a trace cannot be read.
    """
    if RECORDED in policies:
        raise ConfigurationError(
            f"{RECORDED}: the trace's own scheduler cannot be compared with policies, because it "
            "had other machines, limits and reservations than the trace contains; "
            "`outrider replay` reports it"
        )
    named = [PolicySpec.of(name, given, preset) for name, (given, preset) in policies.items()]
    study = Comparison(traces, named, baseline, seeds, Conditions.of(terms, shares), block_s)
    study.check()
    return study


def compare(
    traces: Sequence[str],
    policies: Mapping[str, tuple[Mapping[str, Any], str | None]],
    baseline: str,
    seeds: Sequence[int],
    terms: WorkloadTerms,
    shares: Mapping[str, float],
    block_s: float | None,
    workers: int,
) -> dict[str, Any]:
    """Return the document of ``outrider compare --json`` without its provenance.

    Arguments and errors are those of `study_of`; `workers` are processes, 1: this one.
    """
    study = study_of(traces, policies, baseline, seeds, terms, shares, block_s)
    return run_study(study, _here if workers == 1 else workers)


def _here(specs: Sequence[RunSpec]) -> Iterator[Finished]:
    """Execute every run in this process, one after the other."""
    for number, spec in enumerate(specs):
        try:
            yield Finished(number, execute_run(spec), None)
        except OutriderError as error:
            yield Finished(number, None, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this run
            yield Finished(number, None, f"{type(error).__name__}: {error}")

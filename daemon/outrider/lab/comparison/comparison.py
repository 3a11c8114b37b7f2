"""A comparison: every policy on every trace with every seed, side by side on the cores."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from outrider.lab.bootstrap import BLOCK_S
from outrider.lab.comparison.on_a_trace import PUBLISHED, TraceComparison
from outrider.lab.comparison.over_traces import over_traces
from outrider.lab.comparison.paired import PolicyRun, pair_jobs
from outrider.lab.comparison.running import Candidate, Conditions, Task, run_task
from outrider.lab.workers import Finished, side_by_side
from outrider.model.errors import PolicyError


class Plan(NamedTuple):
    """What is compared.

    Attributes:
        traces: paths, as they were given.
        candidates: the policies in question, with their settings.
        reference: the policy that all others are held against.
        seeds: of the policies' chance and of the estimates'.
        conditions: under which all of them run.
        block_s: seconds of submissions that are drawn together for the intervals.
    """

    traces: Sequence[str]
    candidates: Sequence[Candidate]
    reference: str = "fifo"
    seeds: Sequence[int] = (0,)
    conditions: Conditions = Conditions()
    block_s: float = BLOCK_S

    def all_policies(self) -> list[Candidate]:
        """The candidates, and before them the reference and the published baselines."""
        given = {candidate.policy: candidate for candidate in self.candidates}
        names = dict.fromkeys((self.reference, *PUBLISHED, *given))
        return [given.get(name, Candidate(name)) for name in names]

    def tasks(self) -> list[Task]:
        """Every run."""
        return [
            Task(trace, candidate, seed, self.conditions)
            for trace in self.traces
            for seed in self.seeds
            for candidate in self.all_policies()
        ]


def compare(
    plan: Plan, workers: int, progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Run all of it.

    Args:
        plan: what is compared.
        workers: processes.
        progress: called with the ratio of runs that are done.

    Returns:
        settings; traces (see `TraceComparison.report`); over_traces (see `over_traces`).

    Raises:
        ConfigurationError, PluginError: a policy or setting is wrong; nothing has run.
        TraceError: a trace cannot be read; nothing has run.
        PolicyError: a run failed; it is named.
    """
    for candidate in plan.all_policies():  # refuse what is wrong before a long run, not after it
        candidate.make(0)
    for trace in plan.traces:
        plan.conditions.read(trace)
    tasks = plan.tasks()
    runs: dict[int, PolicyRun] = {}
    for finished in side_by_side(tasks, run_task, workers, lambda task: task.trace):
        runs[finished.number] = result_of(tasks[finished.number], finished)
        if progress is not None:
            progress(len(runs) / len(tasks))
    compared = []
    for trace in plan.traces:
        of_trace = [runs[number] for number, task in enumerate(tasks) if task.trace == trace]
        compared.append(TraceComparison(trace, pair_jobs(of_trace), of_trace, plan.block_s))
    return {
        "settings": _settings(plan),
        "traces": [one.report(plan.reference) for one in compared],
        "over_traces": over_traces(compared, plan.reference),
    }


def result_of(task: Task, finished: Finished) -> PolicyRun:
    """What a task brought. Raises `PolicyError` that names it if it failed."""
    if finished.error is not None:
        raise PolicyError(f"{task}: {finished.error}")
    result: PolicyRun = finished.result
    return result


def _settings(plan: Plan) -> dict[str, Any]:
    given = plan.conditions
    return {
        "reference": plan.reference,
        "published": list(PUBLISHED),
        "seeds": list(plan.seeds),
        "block_s": plan.block_s,
        "estimates": given.estimates,
        "discipline": given.discipline,
        "machines": given.machines,
        "interactive_below_s": given.interactive_below_s,
        "vo_column": given.vo,
        "shares": dict(given.shares),
    }

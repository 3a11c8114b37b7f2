"""A run on a workload file or a window of one: the run report of `outrider replay`."""

from typing import Any, Final

from outrider.journal import LedgerHash
from outrider.model.modes import STRICT
from outrider.plugins.finding import make_estimator
from outrider.replay.grid_run import GridRun
from outrider.replay.run import hashed
from outrider.replay.trials import effective_settings
from outrider.simulation.estimates import (
    LEARNED,
    default_rule,
    estimate_rule,
    estimated,
    oracle_used,
)
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import WorkloadFile, WorkloadWindow, workload_of

_WORK: Final = f"{__name__}:run_on_workload"

DEFAULT: Final = "default"
"""Rule of estimates: what users requested if any did, else the true run time.

The use of the true run time is then reported.
"""


def workload_spec(
    trace: WorkloadFile | WorkloadWindow, policy: PolicySpec, seed: int = 0,
    estimates: str = DEFAULT, discipline: str = STRICT,
) -> RunSpec:  # fmt: skip
    """Return the spec of a run on a workload.

    Args:
        trace: the jobs, with their classes and machines.
        policy: who decides.
        seed: of the policy's chance and of the estimates'.
        estimates: `DEFAULT`, or a rule of `outrider.simulation.estimates`.
        discipline: one of `outrider.model.modes`.
    """
    options = (("estimates", estimates), ("discipline", discipline))
    return RunSpec(_WORK, trace, policy, seed, options)


def run_on_workload(spec: RunSpec) -> dict[str, Any]:
    """Run a spec whose trace is a workload, in this process.

    Returns:
        The run object of ``outrider replay --json`` (trace, policy, settings, seed, preset,
        discipline, class_source, estimates, truth, what was measured, ledger_sha256), with the
        defaults of its options that a sweep does not vary. `truth` is empty where policies knew
        only what users could have said.

    Raises:
        OutriderError: the trace cannot be read, the policy cannot be made, or it failed.
        TypeError: the trace is no workload.
    """
    if not isinstance(spec.trace, WorkloadFile | WorkloadWindow):
        raise TypeError(f"{spec}: the trace is a {type(spec.trace).__name__}, and no workload")
    trace, word = workload_of(spec.trace), spec.option("estimates")
    rule = default_rule(trace) if word == DEFAULT else estimate_rule(word)
    workload = estimated(trace, rule, spec.seed)
    policy, digest = spec.make_policy(), LedgerHash()
    learned = make_estimator(LEARNED, spec.seed, "estimates") if rule.kind == LEARNED else None
    run = GridRun(
        workload, [policy], hashed(digest, workload), discipline=spec.option("discipline"),
        estimator=learned,
    )  # fmt: skip
    about: dict[str, Any] = {
        "trace": spec.trace.name,
        "policy": spec.policy.policy,
        "settings": effective_settings(policy, run.runners[0].reconsider_s),
        "seed": spec.seed,
        "preset": spec.policy.preset,
        "discipline": run.runners[0].discipline,
        "cpus": sum(machine.cpus for machine in workload.machines),
        "class_source": workload.class_source,
        "estimates": rule.word,
        "truth": oracle_used(workload.class_source, rule.word),
    }
    return about | run.run() | {"ledger_sha256": digest.hexdigest()}

"""A run on a campus: the run report of `outrider replay`, and what came week by week."""

from typing import Any, Final

from outrider.ledger import LedgerHash
from outrider.replay.effective_settings import effective_settings
from outrider.replay.keeping import hashed
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.series import SampledRun
from outrider_lab.running.traces import CampusFolder, GeneratedCampus, campus_of

_WORK: Final = f"{__name__}:run_on_campus"


def campus_spec(
    trace: GeneratedCampus | CampusFolder, policy: PolicySpec, seed: int = 0
) -> RunSpec:
    """The spec of a run on a campus."""
    return RunSpec(_WORK, trace, policy, seed)


def run_on_campus(spec: RunSpec) -> dict[str, Any]:
    """Run a spec whose trace is a campus, in this process.

    Returns:
        The run object of ``outrider replay --json`` (trace, policy, settings, seed, preset, what
        was measured, ledger_sha256), and beside it `reconsider_s`, the decision epoch in force,
        and `by_week` and `by_month`, see `outrider_lab.running.series`.

    Raises:
        OutriderError: the trace cannot be read or made, the policy cannot be made, or it failed.
        TypeError: the trace is no campus.
    """
    if not isinstance(spec.trace, GeneratedCampus | CampusFolder):
        raise TypeError(f"{spec}: the trace is a {type(spec.trace).__name__}, and no campus")
    policy = spec.make_policy()
    campus, digest = campus_of(spec.trace), LedgerHash()
    run = SampledRun(campus, [policy], hashed(digest, campus))
    reconsider_s = run.runners[0].reconsider_s
    about: dict[str, Any] = {
        "trace": spec.trace.name,
        "policy": spec.policy.policy,
        "settings": effective_settings(policy, reconsider_s),
        "reconsider_s": reconsider_s,
        "seed": spec.seed,
        "preset": spec.policy.preset,
        "class_source": "none",
    }
    return about | run.run() | {"ledger_sha256": digest.hexdigest()}

"""From a case and a seed to the run that measures it."""

from typing import Final

from outrider_lab.papers.automata.grid import DRIFT, STATIONARY, TURNS, USERS, Case, Size
from outrider_lab.papers.automata.polling import FORGET
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import DrawnWorkload

_PACKAGE: Final = __name__.rpartition(".")[0]


def spec_of(case: Case, size: Size, seed: int) -> RunSpec:
    """The run; the seed is of the arrivals and of the scheduler's chance."""
    if case.experiment == STATIONARY:
        return _stationary(case, size, seed)
    return _polls(case, size, seed) if case.experiment == USERS else _nodes(case, size, seed)


def _stationary(case: Case, size: Size, seed: int) -> RunSpec:
    options = (
        ("scheme", case.treatment.scheme),
        ("may_lock", case.treatment.scheme.startswith("L_R-I")),
        ("steps", size.steps),
        ("repeats", size.repeats),
    )
    drawn = DrawnWorkload("penalties", seed)
    work = f"{_PACKAGE}.stationary:play_stationary"
    return RunSpec(work, drawn, case.treatment.policy_spec, seed, options)


def _polls(case: Case, size: Size, seed: int) -> RunSpec:
    policy = case.treatment.policy_spec
    if policy.policy != TURNS:
        settings = {**dict(policy.settings), "forget_user_s": FORGET}
        policy = PolicySpec.of(policy.policy, settings, policy.preset)
    drawn = DrawnWorkload("polls", seed, (("pattern", case.pattern), ("polls", size.polls)))
    options = (("scheme", case.treatment.scheme), ("poll", case.poll))
    return RunSpec(f"{_PACKAGE}.polling:play_polls", drawn, policy, seed, options)


def _nodes(case: Case, size: Size, seed: int) -> RunSpec:
    options = (("nodes", size.nodes), ("jobs", size.jobs), ("permuted", case.experiment == DRIFT))
    drawn = DrawnWorkload("nodes", seed, options)
    shared = (("scheme", case.treatment.scheme), ("schedulers", case.treatment.schedulers))
    work = f"{_PACKAGE}.nodes:play_on_nodes"
    return RunSpec(work, drawn, case.treatment.policy_spec, seed, shared)

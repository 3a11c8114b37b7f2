"""Settings of the fuzzy rulebase scheduler."""

from typing import Annotated, Literal

from msgspec import Meta

from outrider_policies.planning.settings import PlanningSettings


class FuzzyTdSettings(PlanningSettings, frozen=True):
    """Inputs of the value function, and when it learns."""

    inputs: Annotated[
        Literal[3, 5],
        Meta(
            description="Inputs of the value function: 3 (8 rules) as in the paper (section 3.3); "
            "5 (32 rules): also how far runs are shrunk, and the worth of the queue."
        ),
    ] = 5
    update: Annotated[
        Literal["free_decisions", "every_round"],
        Meta(
            description="When to learn: around forced or shrunk starts, made or considered "
            "(section 3.4), or in every pass, which the paper warns of and is worse."
        ),
    ] = "free_decisions"
    skip_hopeless: Annotated[
        bool,
        Meta(
            description="Never give CPUs to a job that could earn nothing even if it got all it "
            "requests at once; it is never started, as with `replan`. Not in the paper, and "
            "better on an overloaded machine."
        ),
    ] = False
    weigh_replan: Annotated[
        bool,
        Meta(
            description="Consider one more state: all CPUs reallocated as by `replan`. Chosen if "
            "its value is above that after forcing and shrinking. Not in the paper."
        ),
    ] = False
    learn: Annotated[
        bool, Meta(description="Go on learning. False keeps the value function as it is.")
    ] = True
    longest_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Longest job there is, seconds: the unit of the time until the next "
                "completion. Unset: the longest estimate seen so far.",
            ),
        ]
        | None
    ) = None
    reward_scale: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Utility, CPU-seconds, that is a reward of 1. Unset: that of a job of "
                "the longest length on all CPUs of the machine (240 in the paper's base case).",
            ),
        ]
        | None
    ) = None
    first_outputs: Annotated[
        tuple[float, ...],
        Meta(
            description="Initial output of each rule, in the order of `outrider explain`: SSS, "
            "SSL, ... Empty: 0 each, as in the paper.",
            examples=[[0.0] * 32],
        ),
    ] = ()

    def __post_init__(self) -> None:
        rules_n = 2**self.inputs
        if self.first_outputs and len(self.first_outputs) != rules_n:
            raise ValueError(
                f"first_outputs has {len(self.first_outputs)} values; "
                f"{self.inputs} inputs have {rules_n} rules; right would be one value a rule, or []"
            )

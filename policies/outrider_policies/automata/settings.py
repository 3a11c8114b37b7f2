"""Settings of the learning automata."""

from typing import Annotated, Literal

from msgspec import Meta

from outrider.api import PolicySettings
from outrider_policies.automata.automaton import REWARD_PENALTY, SchemeName

PollTakes = Literal["one", "backlog"]
UserReward = Literal["poll", "jobs"]
NodeRule = Literal["automaton", "greedy"]
Response = Literal["queue", "ratio", "ending"]


class AutomataSettings(PolicySettings, frozen=True):
    """Learning schemes, what a poll takes, and when a node is rewarded."""

    scheme: Annotated[
        SchemeName,
        Meta(
            description="How responses move the probabilities: L_R-P (penalties weigh as much as "
            "rewards: follows a site that changes), L_R-eP (penalties weigh little: comes closer "
            "to the best) or L_R-I (penalties are ignored: may lock on a wrong node for good).",
        ),
    ] = REWARD_PENALTY
    reward_step: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="a: how far one reward moves a probability towards 1. More learns faster "
            "and fluctuates more.",
        ),
    ] = 0.05
    penalty_step: Annotated[
        float,
        Meta(ge=0, lt=1, description="b of L_R-eP; L_R-P has b = a and L_R-I has none."),
    ] = 0.005
    floor_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Ratio of draws that are uniform over the enabled actions, so that no "
            "user starves and every node is still tried.",
        ),
    ] = 0.05
    poll: Annotated[
        PollTakes,
        Meta(
            description="What a poll that finds jobs takes from its user: the oldest one, or the "
            "whole backlog, behind which other users then wait.",
        ),
    ] = "one"
    user_reward: Annotated[
        UserReward,
        Meta(
            description="Whether a user who has jobs is rewarded once a poll (LAJS) or once for "
            "every job that waits (equation 4.1, corrected): users of many jobs come first.",
        ),
    ] = "poll"
    forget_user_s: Annotated[
        float,
        Meta(
            gt=0,
            description="A user without a queued job for so many seconds is not polled any more, "
            "until the next job.",
        ),
    ] = 604_800.0
    level: Annotated[
        Literal["cluster", "computer"],
        Meta(
            description="What a node is: a cluster, in which a free machine is drawn, or every "
            "machine. Many alike machines are learned faster as clusters.",
        ),
    ] = "cluster"
    node_rule: Annotated[
        NodeRule,
        Meta(
            description="Draw the node from the automaton, or take the one of the highest "
            "capacity per job, as section 4.1.2 reads (nothing learned is used then).",
        ),
    ] = "automaton"
    response: Annotated[
        Response,
        Meta(
            description="When a node is rewarded, otherwise penalised: `queue`, if it has no more "
            "jobs than the mean node when one is sent to it (LAJS); `ratio`, if its capacity per "
            "job stays above the lowest of any node (section 4.1.2); `ending`, if the job "
            "completes there. Evicted runs are penalties under each.",
        ),
    ] = "queue"

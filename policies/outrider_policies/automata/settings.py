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
    """How both automata learn, what a poll takes, and what a node is rewarded for."""

    scheme: Annotated[
        SchemeName,
        Meta(
            description="How answers move the probabilities: L_R-P (penalties weigh as much as "
            "rewards: it follows a site that changes), L_R-eP (they weigh little: it comes closer "
            "to the best) or L_R-I (they are ignored: it may lock on a wrong node for good).",
        ),
    ] = REWARD_PENALTY
    reward_step: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="a: how far one reward moves a probability towards 1. More learns faster "
            "and rests less.",
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
            description="Ratio of draws that are uniform over what can be chosen, so that no "
            "user starves and no node is forgotten, whatever was learned.",
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
            description="A user without a waiting job for so many seconds is polled no more, "
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
            description="What a node is rewarded for, else penalised: `queue`, that it has no more "
            "jobs than the mean node when one is sent to it (LAJS); `ratio`, that its capacity per "
            "job stays above the lowest of any node (section 4.1.2); `ending`, that the job "
            "completes there. Runs thrown away are penalties under each.",
        ),
    ] = "queue"

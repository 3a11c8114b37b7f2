"""Settings of the policy `sarsa`, and the preset of the paper."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from outrider.api import PolicySettings


class SarsaSettings(PolicySettings, frozen=True):
    """Settings of reward, features, value function, training and starvation guards."""

    start: Annotated[
        str,
        Meta(
            description="Value function at the beginning: `shipped` (trained off-line from "
            "earliest deadline first on synthetic grids), `none`, or a file of `outrider train`."
        ),
    ] = "shipped"
    learn: Annotated[
        bool,
        Meta(
            description="False keeps the initial value function, as a baseline for learning. The "
            "mean run time is still updated."
        ),
    ] = True
    epsilon: Annotated[
        float,
        Meta(ge=0, le=1, description="Probability of starting a queued job drawn at random."),
    ] = 0.02
    gamma: Annotated[
        float, Meta(ge=0, lt=1, description="Discount factor of the next decision's value.")
    ] = 0.2
    reward: Annotated[
        Literal["density", "utility"],
        Meta(
            description="Reward of a completed run besides fairness: its utility in relation to "
            "its work, compared with a mean run, or the utility itself as in the paper."
        ),
    ] = "density"
    fairness_weight: Annotated[
        float, Meta(ge=0, description="Weight of perfect fairness against a utility of 1.")
    ] = 1.0
    encoding: Annotated[
        Literal["relative", "literal"],
        Meta(
            description="Features: quantities relative to the site (mean run, CPUs, a VO's "
            "distance from its share), or those of the paper, hours and VOs by name."
        ),
    ] = "relative"
    approximator: Annotated[
        Literal["mlp", "linear", "boosting"],
        Meta(description="Value function. Trees can only be trained by `training` = `batch`."),
    ] = "mlp"
    hidden_n: Annotated[int, Meta(ge=1, description="Sigmoid units of the hidden layer.")] = 20
    learning_rate: Annotated[
        float, Meta(gt=0, description="Learning rate, in `replay` and in a training.")
    ] = 0.003
    training: Annotated[
        Literal["replay", "batch", "descent"],
        Meta(
            description="`replay`: one gradient step on remembered runs at every outcome. `batch`: "
            "refitted to all remembered runs by scikit-learn, in a background thread. `descent`: "
            "the same by plain gradient descent (a net without Adam)."
        ),
    ] = "replay"
    memory_n: Annotated[
        int,
        Meta(ge=1, description="Runs remembered; fewer follow a changing site sooner."),
    ] = 3000
    replay_n: Annotated[int, Meta(ge=1, description="Runs learned from at every outcome.")] = 32
    retrain_every_n: Annotated[
        int, Meta(ge=1, description="Outcomes from one training of `batch` to the next.")
    ] = 500
    adopt_after_n: Annotated[
        int,
        Meta(
            ge=1,
            description="Outcomes until the result of a training is adopted: enough for the "
            "thread to finish, so that no decision waits for it.",
        ),
    ] = 50
    guard_interactive_s: Annotated[
        float,
        Meta(ge=0, description="Interactive jobs waiting longer come first, the oldest of them."),
    ] = 300.0
    guard_batch_ratio: Annotated[
        float,
        Meta(
            ge=0,
            description="Batch jobs waiting longer, in mean run times, come first while no "
            "interactive job waits.",
        ),
    ] = 4.0
    guard_drain_ratio: Annotated[
        float,
        Meta(
            ge=0,
            description="And longer than this many times the time to work off the whole queue: "
            "under overload all jobs wait long, and the order would be oldest first only.",
        ),
    ] = 1.5
    guards: Annotated[
        bool, Meta(description="False lets values alone decide; single jobs then starve.")
    ] = True


LITERAL: Final[dict[str, Any]] = {
    "epsilon": 0.3,
    "gamma": 0.2,
    "reward": "utility",
    "encoding": "literal",
    "hidden_n": 20,
    "learning_rate": 0.3,
    "training": "descent",
    "guards": False,
}
"""The paper as printed, except that it retrains every 500 outcomes, not at every example."""

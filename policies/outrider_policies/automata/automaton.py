"""A learning automaton of variable structure, whose actions come and go.

Narendra and Thathachar: "Learning Automata: An Introduction", 1989, chapters 4 and 5; the schemes
of Suganthi and Devi, section 1.2.2, whose equations 1.1 and 1.2 were never printed.
"""

import random
from collections.abc import Hashable, Iterable
from math import expm1, log1p
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
SchemeName = Literal["L_R-P", "L_R-eP", "L_R-I"]

REWARD_PENALTY: Final = "L_R-P"
REWARD_EPSILON_PENALTY: Final = "L_R-eP"
REWARD_INACTION: Final = "L_R-I"


class Scheme(NamedTuple):
    """How far one answer of the environment moves the probabilities.

    Attributes:
        reward_step: a, in [0, 1].
        penalty_step: b, in [0, 1].
    """

    reward_step: float
    penalty_step: float


def scheme(name: SchemeName, reward_step: float, penalty_step: float) -> Scheme:
    """The linear scheme of a name.

    Args:
        name: ``L_R-P`` (reward-penalty: b = a), ``L_R-eP`` (reward-epsilon-penalty: b much
            smaller than a) or ``L_R-I`` (reward-inaction: b = 0).
        reward_step: a.
        penalty_step: b, for ``L_R-eP``; the others have no b of their own.
    """
    penalties = {REWARD_PENALTY: reward_step, REWARD_INACTION: 0.0}
    return Scheme(reward_step, penalties.get(name, penalty_step))


class Automaton:
    """Actions, and the probability with which each is drawn.

    After a reward of action i among r: ``p_i += a (1 - p_i)``, ``p_j *= 1 - a``; after a penalty:
    ``p_i *= 1 - b``, ``p_j = b / (r - 1) + (1 - b) p_j``. Where only some actions are enabled the
    step is done on their probabilities scaled to a sum of 1, which then are scaled back (variable
    action set), with r the number enabled; with r < 2 there is nothing to learn. The probabilities
    always sum to 1 within 1e-12, and none is negative.

    Actions are told by their positions, which a removal moves up. `among` are the positions of
    the enabled ones; None: all.

    Attributes:
        actions: by position.
        probabilities: (actions,) p.
    """

    def __init__(self, its_scheme: Scheme, actions: Iterable[Hashable] = ()) -> None:
        self.scheme = its_scheme
        self.actions: list[Hashable] = []
        self.probabilities: Floats = np.empty(0)
        self._at: dict[Hashable, int] = {}
        for action in actions:
            self.add(action)

    def __len__(self) -> int:
        return len(self.actions)

    def __contains__(self, action: Hashable) -> bool:
        return action in self._at

    def position(self, action: Hashable) -> int:
        """Where an action stands. Raises `KeyError` for an unknown one."""
        return self._at[action]

    def positions(self, actions: Iterable[Hashable]) -> Positions:
        """Where several stand."""
        return np.fromiter((self._at[action] for action in actions), dtype=np.intp)

    # -- actions come and go ------------------------------------------------------------------

    def add(self, action: Hashable) -> None:
        """A new action gets 1 / r; the others give it in proportion to what they have."""
        if action in self._at:
            raise ValueError(f"action {action!r} is there already")
        share = 1.0 / (len(self.actions) + 1)
        self._at[action] = len(self.actions)
        self.actions.append(action)
        self.probabilities = np.append(self.probabilities * (1.0 - share), share)
        self._normalise()

    def remove(self, action: Hashable) -> None:
        """The others share what it had, in proportion to what they have."""
        position = self._at[action]
        del self.actions[position]
        self._at = {each: at for at, each in enumerate(self.actions)}
        self.probabilities = np.delete(self.probabilities, position)
        self._normalise()

    # -- drawing ------------------------------------------------------------------------------

    def chances(self, floor: float = 0.0, among: Positions | None = None) -> Floats:
        """With which chance each enabled action is drawn.

        Args:
            floor: exploration: this ratio of draws is uniform over the enabled actions.
            among: positions of the enabled actions, at least one; None: all.
        """
        weights = self.probabilities if among is None else self.probabilities[among]
        total = weights.sum()
        if total <= 0.0:  # whatever is left, nothing is known of it
            return np.full(len(weights), 1.0 / len(weights))
        chances: Floats = weights * ((1.0 - floor) / total) + floor / len(weights)
        return chances

    def draw(self, rng: random.Random, floor: float = 0.0, among: Positions | None = None) -> int:
        """The position of an action drawn by `chances`."""
        at = pick(self.chances(floor, among), rng)
        return at if among is None else int(among[at])

    # -- learning -----------------------------------------------------------------------------

    def reward(self, position: int, among: Positions | None = None, times: int = 1) -> None:
        """The environment rewards an action, `times` in a row.

        Suganthi and Devi mean that by equation 4.1, for a user who submits n jobs. As printed,
        ``p_i = (p_i + n a (1 - p_i)) / (k + 1)``, it gives no probabilities: with the others at
        (1 - a) p_j the sum falls towards 0 as the step k grows, and p_i exceeds 1 for n a > 1 at
        the beginning. n rewards in a row are one of ``a_n = 1 - (1 - a)^n``, and keep the sum.
        """
        a = self.scheme.reward_step
        if times > 1:
            a = 1.0 if a >= 1.0 else -expm1(times * log1p(-a))
        self._step(position, among, a, to_it=a)

    def penalise(self, position: int, among: Positions | None = None) -> None:
        """The environment penalises an action: what it loses the other enabled ones share."""
        self._step(position, among, self.scheme.penalty_step, to_it=0.0)

    def _step(self, position: int, among: Positions | None, step: float, to_it: float) -> None:
        """All enabled actions give `step` of what they have; `to_it` is the action's part of it."""
        p = self.probabilities
        r = len(p) if among is None else len(among)
        if r < 2 or step == 0.0:
            return
        enabled: Any = slice(None) if among is None else among
        mass = p[enabled].sum()
        own = (1.0 - step) * p[position] + to_it * mass
        p[enabled] *= 1.0 - step
        p[enabled] += (step - to_it) * mass / (r - 1)
        p[position] = own
        self._normalise()

    def _normalise(self) -> None:
        """Take out what rounding brings in: it would add up over millions of steps."""
        p = self.probabilities
        if not len(p):
            return
        total = p.sum()
        if total > 0.0:
            p /= total
        else:
            p[:] = 1.0 / len(p)

    # -- remembering --------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Actions and probabilities as plain data."""
        return {"actions": list(self.actions), "probabilities": self.probabilities.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave, exactly."""
        self.actions = list(saved["actions"])
        self._at = {action: at for at, action in enumerate(self.actions)}
        self.probabilities = np.array(saved["probabilities"], dtype=float)


def pick(chances: Floats, rng: random.Random) -> int:
    """A position drawn with the chance that stands there; they need not sum to 1."""
    sums = chances.cumsum()
    at = int(sums.searchsorted(rng.random() * sums[-1], side="right"))
    return min(at, len(sums) - 1)

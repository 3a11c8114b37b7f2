"""A variable-structure learning automaton with a changing set of actions.

Narendra and Thathachar: "Learning Automata: An Introduction", 1989, chapters 4 and 5. The schemes
are those of Suganthi and Devi, section 1.2.2; its equations 1.1 and 1.2 are missing in print.
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
    """Step sizes: how much one response of the environment changes the probabilities.

    Attributes:
        reward_step: a, in [0, 1].
        penalty_step: b, in [0, 1].
    """

    reward_step: float
    penalty_step: float


def scheme(name: SchemeName, reward_step: float, penalty_step: float) -> Scheme:
    """Return the linear learning scheme of a name.

    Args:
        name: ``L_R-P`` (reward-penalty: b = a), ``L_R-eP`` (reward-epsilon-penalty: b much
            smaller than a) or ``L_R-I`` (reward-inaction: b = 0).
        reward_step: a.
        penalty_step: b of ``L_R-eP``; ignored for the others.
    """
    penalties = {REWARD_PENALTY: reward_step, REWARD_INACTION: 0.0}
    return Scheme(reward_step, penalties.get(name, penalty_step))


class Automaton:
    """Set of actions and their probabilities.

    After a reward of action i among r: ``p_i += a (1 - p_i)``, ``p_j *= 1 - a``; after a penalty:
    ``p_i *= 1 - b``, ``p_j = b / (r - 1) + (1 - b) p_j``. If only some actions are enabled, their
    probabilities are scaled to a sum of 1, updated, and scaled back (variable action set), with r
    the number enabled; with r < 2 nothing changes. The probabilities always sum to 1 within 1e-12,
    and none is negative.

    Methods name actions by position; a removal shifts later positions down. `among` are the
    positions of the enabled actions; None: all.

    Attributes:
        actions: by position.
        probabilities: (actions,) p.
    """

    def __init__(self, learning_scheme: Scheme, actions: Iterable[Hashable] = ()) -> None:
        self.scheme = learning_scheme
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
        """Return the position of an action. Raises `KeyError` for an unknown one."""
        return self._at[action]

    def positions(self, actions: Iterable[Hashable]) -> Positions:
        """Return the positions of several actions. Raises `KeyError` for an unknown one."""
        return np.fromiter((self._at[action] for action in actions), dtype=np.intp)

    # -- the set of actions -------------------------------------------------------------------

    def add(self, action: Hashable) -> None:
        """Add an action with probability 1 / r; the others are scaled down."""
        if action in self._at:
            raise ValueError(f"action {action!r} is there already")
        share = 1.0 / (len(self.actions) + 1)
        self._at[action] = len(self.actions)
        self.actions.append(action)
        self.probabilities = np.append(self.probabilities * (1.0 - share), share)
        self._normalise()

    def remove(self, action: Hashable) -> None:
        """Remove an action; the others are scaled up."""
        position = self._at[action]
        del self.actions[position]
        self._at = {each: at for at, each in enumerate(self.actions)}
        self.probabilities = np.delete(self.probabilities, position)
        self._normalise()

    # -- drawing ------------------------------------------------------------------------------

    def chances(self, floor: float = 0.0, among: Positions | None = None) -> Floats:
        """Return (enabled,) the probability with which each enabled action is drawn.

        Args:
            floor: exploration: this ratio of draws is uniform over the enabled actions.
            among: positions of the enabled actions, at least one; None: all.
        """
        weights = self.probabilities if among is None else self.probabilities[among]
        total = weights.sum()
        if total <= 0.0:  # nothing is known about the enabled actions
            return np.full(len(weights), 1.0 / len(weights))
        chances: Floats = weights * ((1.0 - floor) / total) + floor / len(weights)
        return chances

    def draw(self, rng: random.Random, floor: float = 0.0, among: Positions | None = None) -> int:
        """Draw an action by `chances`; return its position."""
        at = pick(self.chances(floor, among), rng)
        return at if among is None else int(among[at])

    # -- learning -----------------------------------------------------------------------------

    def reward(self, position: int, among: Positions | None = None, times: int = 1) -> None:
        """Learn that the environment rewards an action, `times` in a row.

        This corrects equation 4.1 of Suganthi and Devi, for a user who submits n jobs. As printed,
        ``p_i = (p_i + n a (1 - p_i)) / (k + 1)`` does not give probabilities: with the others at
        (1 - a) p_j the sum falls towards 0 as the step k grows, and p_i exceeds 1 for n a > 1 at
        the beginning. n rewards in a row equal one with ``a_n = 1 - (1 - a)^n``, and keep the sum.
        """
        a = self.scheme.reward_step
        if times > 1:
            a = 1.0 if a >= 1.0 else -expm1(times * log1p(-a))
        self._step(position, among, a, own_part=a)

    def penalise(self, position: int, among: Positions | None = None) -> None:
        """Learn that the environment penalises an action: the other enabled ones share its loss."""
        self._step(position, among, self.scheme.penalty_step, own_part=0.0)

    def _step(self, position: int, among: Positions | None, step: float, own_part: float) -> None:
        """Scale enabled actions by 1 - `step`; the action at `position` gains `own_part`."""
        p = self.probabilities
        r = len(p) if among is None else len(among)
        if r < 2 or step == 0.0:
            return
        enabled: Any = slice(None) if among is None else among
        mass = p[enabled].sum()
        own = (1.0 - step) * p[position] + own_part * mass
        p[enabled] *= 1.0 - step
        p[enabled] += (step - own_part) * mass / (r - 1)
        p[position] = own
        self._normalise()

    def _normalise(self) -> None:
        """Remove rounding errors, which would add up over millions of steps."""
        p = self.probabilities
        if not len(p):
            return
        total = p.sum()
        if total > 0.0:
            p /= total
        else:
            p[:] = 1.0 / len(p)

    # -- state --------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the actions and probabilities as plain data."""
        return {"actions": list(self.actions), "probabilities": self.probabilities.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore exactly what `save` returned."""
        self.actions = list(saved["actions"])
        self._at = {action: at for at, action in enumerate(self.actions)}
        self.probabilities = np.array(saved["probabilities"], dtype=float)


def pick(chances: Floats, rng: random.Random) -> int:
    """Draw a position in proportion to `chances`, which need not sum to 1."""
    sums = chances.cumsum()
    at = int(sums.searchsorted(rng.random() * sums[-1], side="right"))
    return min(at, len(sums) - 1)

"""Users: careful ones, careless ones and the one who submits the storm."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

USERS: Final = 60
FEWEST_USERS: Final = 6
CARELESS_SHARE: Final = 0.30
ZIPF: Final = 1.5
VOS: Final = 4


class Users(NamedTuple):
    """Users by number.

    Attributes:
        names: (users,) names.
        vo: (users,) VO number.
        vo_names: (VOs,) names.
        careful, careless: numbers of users who submit mixed batches, and those of bad jobs only.
        careful_weight, careless_weight: relative frequency of each one's submissions.
        stormer: number of the user who submits the storm.
    """

    names: list[str]
    vo: Ints
    vo_names: list[str]
    careful: Ints
    careful_weight: Floats
    careless: Ints
    careless_weight: Floats
    stormer: int


def build_users(size_ratio: float, rng: np.random.Generator) -> Users:
    """Draw the users of a pool with `size_ratio` times the paper's machines.

    Their number grows with the square root of the pool. Numbers are shuffled, so that a name says
    nothing about how its user submits. Careless users submit equally often, careful ones by
    Zipf's law: a few submit most of the jobs.
    """
    count = max(FEWEST_USERS, round(USERS * size_ratio**0.5))
    shuffled = rng.permutation(count).astype(np.int32)
    careless = max(1, round(CARELESS_SHARE * count))
    careful = shuffled[1 + careless :]
    digits = max(2, len(str(count - 1)))
    return Users(
        names=[f"u{number:0{digits}d}" for number in range(count)],
        vo=(np.arange(count) % VOS).astype(np.int32),
        vo_names=[f"vo{number}" for number in range(VOS)],
        careful=careful,
        careful_weight=np.arange(1.0, len(careful) + 1) ** -ZIPF,
        careless=shuffled[1 : 1 + careless],
        careless_weight=np.ones(careless),
        stormer=int(shuffled[0]),
    )

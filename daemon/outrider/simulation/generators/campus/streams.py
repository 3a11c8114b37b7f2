"""Named random streams of one seed: drawing more from one changes none of the others."""

from typing import NamedTuple

import numpy as np


class Streams(NamedTuple):
    """Random generators, one per purpose; append new ones, so that seeds keep their results."""

    rooms: np.random.Generator
    habits: np.random.Generator
    moods: np.random.Generator
    sessions: np.random.Generator
    users: np.random.Generator
    batches: np.random.Generator
    broken_batches: np.random.Generator
    spoiling: np.random.Generator
    run_times: np.random.Generator
    kills: np.random.Generator
    broken_kills: np.random.Generator
    storm: np.random.Generator


def streams_of(seed: int) -> Streams:
    """Return the streams of a seed, spawned from one `numpy.random.SeedSequence`."""
    children = np.random.SeedSequence(seed).spawn(len(Streams._fields))
    return Streams(*(np.random.default_rng(child) for child in children))

"""Predictions: what a policy expects of a run that begins, so that it can be scored later."""

from typing import NamedTuple


class Prediction(NamedTuple):
    """What a policy expects of one run, at the machine on which it really begins.

    Attributes:
        eviction_probability: that the run ends before its job is done, for any reason but
            somebody's will (its user's, an administrator's): 0 to 1. None: no opinion.
        run_s: expected seconds of work of the run if it completes its job. None: no opinion.
    """

    eviction_probability: float | None = None
    run_s: float | None = None

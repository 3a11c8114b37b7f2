"""Registering a canary trial: everything about it is settled before its first day."""

from collections.abc import Mapping
from typing import NamedTuple

from outrider.acting.trial import Trial, draw_days, midnights
from outrider.acting.trial_outcome import MEASURES
from outrider.model.localtime import time_zone
from outrider.service.config.declarations import Config, acting_of, policies_of
from outrider.service.trials.record import terms_of


class Stated(NamedTuple):
    """What the twin states of a policy before a trial.

    Attributes:
        as_: ``next``: as a forecast; ``past``: as what would have been; empty: nothing.
        ratios: by measure, estimate, low and high.
    """

    as_: str = ""
    ratios: Mapping[str, Mapping[str, float]] = {}


def registered(config: Config, now_s: float, stated: Stated) -> Trial:
    """The trial of a configuration, from the next midnight of the site's wall clock on.

    Args:
        config: in force; its mode is canary.
        now_s: of the site, Unix seconds.
        stated: what the twin states of it.
    """
    acting = acting_of(config)
    policy, settings = next(iter(policies_of(config).items()))
    return Trial(
        registered_s=now_s,
        policy=policy,
        settings=dict(settings),
        seed=acting.canary_seed,
        midnights_s=midnights(now_s, acting.canary_days, time_zone(config.timezone)),
        acts=draw_days(acting.canary_seed, acting.canary_days),
        washout_s=acting.canary_washout_s,
        measures=tuple(measure.name for measure in MEASURES),
        stated={name: dict(one) for name, one in stated.ratios.items()},
        stated_as=stated.as_,
        terms=terms_of(config),
    )

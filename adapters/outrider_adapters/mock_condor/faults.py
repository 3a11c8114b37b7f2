"""Fault injection between a client and the pool, reproducible by a seed."""

import random
from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from outrider_adapters.htcondor.pool_calls import HTCondorException

_Item = TypeVar("_Item")

Ratio = Annotated[float, Meta(ge=0, le=1)]


class Faults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the faults to inject; by default none."""

    refused_edit_ratio: Annotated[
        Ratio, Meta(description="Edits that report success and change nothing.")
    ] = 0.0
    outage_ratio: Annotated[
        Ratio, Meta(description="Ratio of calls that fail like calls without an answer.")
    ] = 0.0
    outage_from_s: Annotated[
        float, Meta(description="Pool time from which every call fails, Unix seconds.")
    ] = 0.0
    outage_until_s: Annotated[
        float, Meta(description="Pool time until which every call fails, Unix seconds.")
    ] = 0.0
    answer_delay_s: Annotated[
        float, Meta(ge=0, description="Seconds that every call blocks before it answers.")
    ] = 0.0
    stale_s: Annotated[
        float, Meta(ge=0, description="How far the collector's ads are behind, pool seconds.")
    ] = 0.0
    duplicate_ad_ratio: Annotated[Ratio, Meta(description="Ads that a query returns twice.")] = 0.0
    duplicate_record_ratio: Annotated[
        Ratio, Meta(description="Records that the event log holds twice.")
    ] = 0.0


class Transport:
    """The connection to the pool: every call of a client passes through it and may fail.

    Args:
        faults: the faults to inject.
        rng: decides which calls and records are affected.
        now: the pool's clock, Unix seconds.
        sleep: blocks the caller for seconds; real calls block likewise.
    """

    def __init__(
        self,
        faults: Faults,
        rng: random.Random,
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.faults = faults
        self._rng = rng
        self._now = now
        self._sleep = sleep

    def call(self, failure: str) -> None:
        """Begin a call: delay it, or fail.

        Raises:
            HTCondorException: with the message `failure`, during an outage.
        """
        if self.faults.answer_delay_s:
            self._sleep(self.faults.answer_delay_s)
        silent = self.faults.outage_from_s <= self._now() < self.faults.outage_until_s
        if silent or self._occurs(self.faults.outage_ratio):
            raise HTCondorException(failure)

    def loses_edit(self) -> bool:
        """Return whether an edit of one job is reported as done but not made."""
        return self._occurs(self.faults.refused_edit_ratio)

    def answer(self, ads: list[_Item]) -> list[_Item]:
        """Return the ads as a client receives them: some twice."""
        ratio = self.faults.duplicate_ad_ratio
        if not ratio:
            return ads
        return [ad for ad in ads for _ in range(2 if self._occurs(ratio) else 1)]

    def repeats_record(self) -> bool:
        """Return whether a record of the event log is written twice."""
        return self._occurs(self.faults.duplicate_record_ratio)

    def _occurs(self, ratio: float) -> bool:
        return ratio > 0.0 and self._rng.random() < ratio

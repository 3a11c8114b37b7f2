"""The parts of a `SiteView` that a policy of these tests has no reason to ask for."""

from collections.abc import Iterable, Mapping
from typing import NoReturn

from outrider.api import Job, TimeUtility


def _refuse() -> NoReturn:
    raise AssertionError("the policy asked for what this view does not have")


class Unasked:
    """Ends the test of a policy that asks."""

    @property
    def machines_n(self) -> int:
        """Not had."""
        _refuse()

    @property
    def open_cpus(self) -> int:
        """Not had."""
        _refuse()

    def cpus_of(self, machine: int) -> int:
        """Not had."""
        _refuse()

    def cpus_left(self, machine: int) -> int:
        """Not had."""
        _refuse()

    def speed_of(self, machine: int) -> float:
        """Not had."""
        _refuse()

    def tightest(self, cpus: int) -> int:
        """Not had."""
        _refuse()

    def resources_left(self, machine: int) -> Mapping[str, float]:
        """Not had."""
        _refuse()

    def may_use(self, job: Job, machine: int) -> bool:
        """Not had."""
        _refuse()

    def running_on(self, machine: int) -> Iterable[Job]:
        """Not had."""
        _refuse()

    @property
    def running(self) -> Iterable[Job]:
        """Not had."""
        _refuse()

    def utility(self, job: Job) -> TimeUtility:
        """Not had."""
        _refuse()

    @property
    def delivered_cpu_s(self) -> float:
        """Not had."""
        _refuse()

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Not had."""
        _refuse()

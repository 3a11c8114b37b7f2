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
        """Unavailable in these tests: using it fails."""
        _refuse()

    @property
    def open_cpus(self) -> int:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def cpus_of(self, machine: int) -> int:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def cpus_left(self, machine: int) -> int:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def speed_of(self, machine: int) -> float:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def tightest(self, cpus: int) -> int:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def resources_left(self, machine: int) -> Mapping[str, float]:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def may_use(self, job: Job, machine: int) -> bool:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def running_on(self, machine: int) -> Iterable[Job]:
        """Unavailable in these tests: using it fails."""
        _refuse()

    @property
    def running(self) -> Iterable[Job]:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def utility(self, job: Job) -> TimeUtility:
        """Unavailable in these tests: using it fails."""
        _refuse()

    @property
    def delivered_cpu_s(self) -> float:
        """Unavailable in these tests: using it fails."""
        _refuse()

    def vo_shares(self) -> Mapping[str, tuple[float, float]]:
        """Unavailable in these tests: using it fails."""
        _refuse()

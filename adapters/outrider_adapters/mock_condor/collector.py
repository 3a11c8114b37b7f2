"""The collector: what daemons told last, and the client that asks for it."""

from collections import deque
from collections.abc import Callable

from outrider_adapters.mock_condor.ads import at_time, holds, projected
from outrider_adapters.mock_condor.bindings import (
    AdType,
    ClassAd,
    ClassAdException,
    DaemonType,
    ExprTree,
    HTCondorException,
)
from outrider_adapters.mock_condor.faults import Wire

_NO_ANSWER = "Failed communication with collector."
_FOR_LOCATION = ("MyAddress", "CondorVersion", "Name", "Machine")
_AD_TYPES = {DaemonType.Schedd: AdType.Schedd, DaemonType.Negotiator: AdType.Negotiator}
_GONE = ""
_SLOT_TYPES = (AdType.Startd, AdType.Slot)


class Board:
    """The newest ad of every slot, as it was when its startd told.

    Args:
        stale_s: how much later than told an ad becomes visible (a fault).
    """

    def __init__(self, stale_s: float) -> None:
        self._stale_s = stale_s
        self._coming: deque[tuple[float, str, str]] = deque()
        self._arrived: dict[str, str] = {}
        self._shown: dict[str, ClassAd] = {}

    def tell(self, now_s: float, name: str, ad: ClassAd | None) -> None:
        """A startd tells of a slot; None: the slot is gone."""
        if ad is not None:
            ad["MyCurrentTime"] = ad["LastHeardFrom"] = int(now_s)
        self._coming.append((now_s + self._stale_s, name, _GONE if ad is None else repr(ad)))
        self._let_arrive(now_s)

    def ads(self, now_s: float) -> list[ClassAd]:
        """What is visible now. The ads are the board's own."""
        self._let_arrive(now_s)
        for name, text in self._arrived.items():
            if text == _GONE:
                self._shown.pop(name, None)
            else:
                self._shown[name] = ClassAd(text)
        self._arrived.clear()
        return list(self._shown.values())

    def _let_arrive(self, now_s: float) -> None:
        while self._coming and self._coming[0][0] <= now_s:
            _, name, text = self._coming.popleft()
            self._arrived[name] = text


class Collector:
    """A client with the calls of ``htcondor2.Collector``.

    It knows slots (``AdType.Startd``) and one ad each of the schedd and the negotiator.
    """

    def __init__(
        self,
        board: Board,
        daemons: Callable[[], dict[AdType, ClassAd]],
        wire: Wire,
        now: Callable[[], float],
    ) -> None:
        self._board = board
        self._daemons = daemons
        self._wire = wire
        self._now = now

    def query(
        self,
        ad_type: AdType = AdType.Any,
        constraint: str | None = None,
        projection: list[str] | None = None,
        statistics: str | None = None,
    ) -> list[ClassAd]:
        """Ads of this type for which the constraint is true.

        Args:
            ad_type: which ads; types that the mock pool does not have give none.
            constraint: a ClassAd expression; None: all.
            projection: attributes to return; None or empty: all.
            statistics: ignored, for there are none.

        Raises:
            HTCondorException: the collector does not answer, or the constraint is no expression.
        """
        self._wire.call(_NO_ANSWER)
        ads = self._ads(ad_type)
        if constraint:
            try:
                condition = ExprTree(at_time(str(constraint), self._now()))
            except ClassAdException as error:
                raise HTCondorException("Failed to parse constraint.") from error
            ads = [ad for ad in ads if holds(condition, ad)]
        return self._wire.answer([projected(ad, projection or ()) for ad in ads])

    def locate(self, daemon_type: DaemonType, name: str | None = None) -> ClassAd | None:
        """Where the daemon of this type is; None if the pool has none of that name."""
        found = self.locateAll(daemon_type)
        return next((ad for ad in found if name in (None, ad["Name"])), None)

    def locateAll(self, daemon_type: DaemonType) -> list[ClassAd]:  # noqa: N802  # htcondor2's name
        """Where the daemons of this type are."""
        if daemon_type not in _AD_TYPES:
            return []
        return self.query(_AD_TYPES[daemon_type], projection=list(_FOR_LOCATION))

    def _ads(self, ad_type: AdType) -> list[ClassAd]:
        slots = self._board.ads(self._now())
        daemons = self._daemons()
        if ad_type == AdType.Any:
            return [*slots, *daemons.values()]
        if ad_type in _SLOT_TYPES:
            return slots
        return [daemons[ad_type]] if ad_type in daemons else []

"""How long scheduling passes take."""

import time

from outrider.engine.accounting.distribution import DECISION_BOUNDS_S, Distribution


class PassTimes(Distribution):
    """Seconds that each scheduling pass took; it is told of each beginning and end."""

    def __init__(self) -> None:
        super().__init__(exact=False, bounds=DECISION_BOUNDS_S)
        self._began_s = 0.0

    def __call__(self, begins: bool) -> None:
        """A pass begins or ends now."""
        if begins:
            self._began_s = time.perf_counter()
        else:
            self.add(time.perf_counter() - self._began_s)

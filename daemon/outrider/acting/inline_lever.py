"""A lever that is worked when somebody says so: for simulated time, in which all has its order."""

from outrider.acting.lever_thread import LeverThread


class InlineLever(LeverThread):
    """As `LeverThread`, without a thread: `work_off` does what is due."""

    def _begin(self) -> None:
        """No thread begins."""

    def work_off(self) -> None:
        """Do all that is due now; a call that fails is tried again at the next time."""
        while self._round() == 0.0:
            pass

    def close(self, within_s: float) -> bool:
        """Take back all that stands, and end."""
        self._end()
        return True

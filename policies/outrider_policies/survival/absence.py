"""Log-ins and hours without an owner per machine, counted hour by hour."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


class Absence:
    """Records log-ins and log-outs, and sums them up at the end of each hour.

    Recording only appends: a large campus has two million log-ins and log-outs a year.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._notes: list[int] = []  # machine number at a log-in, its complement (~) at a log-out
        self._present = np.zeros(0, dtype=bool)

    def note(self, time_s: float, machine: int, came: bool) -> None:
        """Record a log-in (`came`) or log-out at a machine."""
        self._times_s.append(time_s)
        self._notes.append(machine if came else ~machine)

    def noted(self) -> Numbers:
        """The machine of each log-in and log-out recorded in the present hour."""
        notes = np.fromiter(self._notes, np.intp, len(self._notes))
        return np.maximum(notes, ~notes)

    def is_present(self, machine: int) -> bool:
        """Whether an owner is logged in there now."""
        of_it = (machine, ~machine)
        for note in reversed(self._notes):
            if note in of_it:
                return note == machine
        return machine < len(self._present) and bool(self._present[machine])

    def add_up(self, start_s: float, end_s: float, machines: int) -> tuple[Floats, Floats]:
        """Sum up an interval that is over, and begin the next.

        Args:
            start_s: begin of the interval.
            end_s: its end; everything recorded lies between.
            machines: number of machines.

        Returns:
            (machines,) log-ins, and (machines,) hours without an owner.
        """
        present = np.zeros(machines, dtype=bool)
        present[: len(self._present)] = self._present
        absent_s = np.where(present, 0.0, end_s - start_s)
        logins = np.zeros(machines)
        if self._notes:
            who = self.noted()
            came = np.fromiter(self._notes, np.intp, len(self._notes)) >= 0
            remaining_s = end_s - np.fromiter(self._times_s, np.float64, len(self._times_s))
            absent_s += np.bincount(who, np.where(came, -remaining_s, remaining_s), machines)
            logins += np.bincount(who[came], minlength=machines)
            present[who] = came  # the last record of a machine wins
            self._times_s.clear()
            self._notes.clear()
        self._present = present
        return logins, np.clip(absent_s, 0.0, end_s - start_s) / 3600.0

    def save(self) -> dict[str, Any]:
        """Records of the present hour, and where owners were logged in when it began."""
        return {
            "notes": [
                [time_s, max(note, ~note), note >= 0]
                for time_s, note in zip(self._times_s, self._notes, strict=True)
            ],
            "present": self._present.tolist(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._times_s.clear()
        self._notes.clear()
        for time_s, machine, came in saved["notes"]:
            self.note(time_s, machine, came)
        self._present = np.array(saved["present"], dtype=bool)

"""Log-ins and hours without an owner, machine by machine, one hour at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


class Absence:
    """Notes who comes and goes, and adds it up when an hour is over.

    Noting only appends, for owners come and go two million times a year.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._notes: list[int] = []  # the machine where an owner came, its complement: one went
        self._present = np.zeros(0, dtype=bool)

    def note(self, time_s: float, machine: int, came: bool) -> None:
        """An owner came to a machine, or went."""
        self._times_s.append(time_s)
        self._notes.append(machine if came else ~machine)

    def noted(self) -> Numbers:
        """The machine of each note since the last hour."""
        notes = np.fromiter(self._notes, np.intp, len(self._notes))
        return np.maximum(notes, ~notes)

    def is_present(self, machine: int) -> bool:
        """Whether an owner sits there now."""
        of_it = (machine, ~machine)
        for note in reversed(self._notes):
            if note in of_it:
                return note == machine
        return machine < len(self._present) and bool(self._present[machine])

    def add_up(self, start_s: float, end_s: float, machines: int) -> tuple[Floats, Floats]:
        """Add up a stretch that is over, and begin the next with no notes.

        Args:
            start_s: the stretch begins.
            end_s: it ends; everything noted lies between.
            machines: how many there are.

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
            left_s = end_s - np.fromiter(self._times_s, np.float64, len(self._times_s))
            absent_s += np.bincount(who, np.where(came, -left_s, left_s), machines)
            logins += np.bincount(who[came], minlength=machines)
            present[who] = came  # of several notes of one machine the last one stands
            self._times_s.clear()
            self._notes.clear()
        self._present = present
        return logins, np.clip(absent_s, 0.0, end_s - start_s) / 3600.0

    def save(self) -> dict[str, Any]:
        """What was noted since the last hour, and where owners sat then."""
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

"""Log-ins and hours without an owner, machine by machine, one hour at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Absence:
    """Notes who comes and goes, and adds it up when an hour is over.

    Noting only appends, for owners come and go two million times a year.
    """

    def __init__(self) -> None:
        self._notes: list[tuple[float, int, bool]] = []
        self._present = np.zeros(0, dtype=bool)

    def note(self, time_s: float, machine: int, came: bool) -> None:
        """An owner came to a machine, or went."""
        self._notes.append((time_s, machine, came))

    def noted(self) -> list[int]:
        """The machine of each note since the last hour."""
        return [machine for _, machine, _ in self._notes]

    def is_present(self, machine: int) -> bool:
        """Whether an owner sits there now."""
        for _, who, came in reversed(self._notes):
            if who == machine:
                return came
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
        present = np.pad(self._present, (0, machines - len(self._present)))
        absent_s = np.where(present, 0.0, end_s - start_s)
        logins = np.zeros(machines)
        if self._notes:
            times_s, who, came = (np.array(column) for column in zip(*self._notes, strict=True))
            left_s = end_s - times_s
            absent_s += np.bincount(who, np.where(came, -left_s, left_s), machines)
            logins += np.bincount(who[came], minlength=machines)
            present[who] = came  # of several notes of one machine the last one stands
            self._notes.clear()
        self._present = present
        return logins, np.clip(absent_s, 0.0, end_s - start_s) / 3600.0

    def save(self) -> dict[str, Any]:
        """What was noted since the last hour, and where owners sat then."""
        return {
            "notes": [list(note) for note in self._notes],
            "present": self._present.tolist(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._notes = [(time_s, machine, came) for time_s, machine, came in saved["notes"]]
        self._present = np.array(saved["present"], dtype=bool)

"""Numbers of machines by name; that of a machine that is forgotten goes to another."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any


class MachineNumbers:
    """Machines by name and by number.

    Attributes:
        names: by number; that of a machine that is forgotten keeps its name until it is reused.
        given_up: numbers of machines that were forgotten, of which nobody was told yet.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.given_up: list[int] = []
        self._numbers: dict[str, int] = {}
        self._spare: list[int] = []

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def get(self, name: str) -> int | None:
        """The number of a machine; None for one that was never named, or is forgotten."""
        return self._numbers.get(name)

    def items(self) -> Iterable[tuple[str, int]]:
        """Name and number of every machine that is not forgotten."""
        return self._numbers.items()

    def known(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of those of some machines that have one, ascending."""
        return tuple(sorted(self._numbers[name] for name in names if name in self._numbers))

    def give(self, name: str) -> int:
        """A number for a machine that has none."""
        if self._spare:
            m = self._spare.pop()
            self.names[m] = name
        else:
            m = len(self.names)
            self.names.append(name)
        self._numbers[name] = m
        return m

    def give_up(self, names: Collection[str]) -> None:
        """These machines are forgotten: their numbers go to others."""
        for name in names:
            m = self._numbers.pop(name, None)
            if m is not None:
                self.given_up.append(m)
                self._spare.append(m)

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"names": self.names, "spare": self._spare, "given_up": self.given_up}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `save` gave; before names were bounded, none was forgotten."""
        self.names = list(saved["names"])
        self._spare = list(saved.get("spare", ()))
        self.given_up = list(saved.get("given_up", ()))
        spare = set(self._spare)
        self._numbers = {name: m for m, name in enumerate(self.names) if m not in spare}

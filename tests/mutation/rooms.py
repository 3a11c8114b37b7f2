"""The rooms whose code is mutated, and the tests that are theirs."""

from typing import Final, NamedTuple


class Room(NamedTuple):
    """A part of the code, and the tests that should notice whatever is wrong there.

    Attributes:
        code: folder, from the root.
        tests: folders or files; the first are asked first.
    """

    code: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the room's name on the command line."""
        return self.code.rpartition("/")[2].removeprefix("outrider_")


ROOMS: Final = (
    Room("daemon/outrider/engine", ("tests/engine", "tests/policies")),
    Room("daemon/outrider/journal", ("tests/journal", "tests/service/restarting")),
    Room("daemon/outrider/acting", ("tests/acting", "tests/service/running/test_gate.py")),
    Room("daemon/outrider/service", ("tests/service", "tests/docs/test_generated.py")),
    Room("policies/outrider_policies", ("tests/policies",)),
)


def tests_of(rooms: tuple[Room, ...]) -> list[str]:
    """Folders and files of all their tests, none within another."""
    paths = {path for room in rooms for path in room.tests}
    return sorted(
        path for path in paths if not any(path.startswith(f"{other}/") for other in paths)
    )

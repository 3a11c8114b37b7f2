"""Which tests must notice a fault in which room, the nearest first: pytest stops at the first."""

from typing import Final, NamedTuple


class Room(NamedTuple):
    """A part of the code, and the tests that should notice whatever is wrong there.

    Attributes:
        code: folder or file, from the root.
        tests: folders or files, the quickest to notice first.
        within_s: seconds for all of them on a slow machine; a mutant that takes longer hangs, and
            is noticed.
    """

    code: str
    tests: tuple[str, ...]
    within_s: float = 900.0


ROOMS: Final = (
    Room(
        "daemon/outrider/engine",
        ("tests/engine", "tests/replay", "tests/policies", "tests/simulation"),
    ),
    Room("daemon/outrider/ledger", ("tests/ledger", "tests/service/restarting")),
    Room("daemon/outrider/acting", ("tests/acting", "tests/service/running")),
    Room(
        "daemon/outrider/service",
        ("tests/service/telling", "tests/service/metrics", "tests/service/refusing",
         "tests/service/web", "tests/service/running", "tests/service/restarting",
         "tests/service/mqtt"),
    ),
    Room("policies/outrider_policies", ("tests/policies", "tests/conformance")),
)  # fmt: skip

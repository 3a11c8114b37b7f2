"""What is said of names that are not followed, for there are too many of their kind."""

from typing import Final

from outrider.engine.ingest.bounded_names import (
    CLASS,
    CLUSTER,
    ELIGIBLE,
    MACHINE,
    OTHER,
    USER,
    VO,
    Names,
)

_PLURAL: Final = {
    USER: "users",
    VO: "VOs",
    CLASS: "job classes",
    CLUSTER: "machine groups",
    MACHINE: "machines",
    ELIGIBLE: "kinds of eligibility",
}


def name_notes(names: Names) -> list[str]:
    """A sentence for each kind of which more names were told than are followed."""
    return [
        f"{told.folded:,} events told of {_PLURAL[kind]} beyond the {told.most:,} that are named: "
        f'they are counted as "{OTHER}"'
        if kind != ELIGIBLE
        else f"{told.folded:,} events told of {_PLURAL[kind]} beyond the {told.most:,} that are "
        "followed: Outrider knows of no machine for their jobs"
        for kind, told in names.by_kind.items()
        if told.folded
    ]

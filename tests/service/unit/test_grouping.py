"""Machine groups out of names and attributes."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.service.unit.suggestion import (
    MAX_GROUPS,
    Grouping,
    by_attribute,
    by_name,
)

LIBRARY = [f"lib-{n:02}" for n in range(1, 41)]


def patterns(grouping: Grouping) -> dict[str, tuple[str, int]]:
    return {group.name: (group.pattern, len(group.machines)) for group in grouping.groups}


@pytest.mark.parametrize(
    ("names", "right", "alone"),
    [
        (LIBRARY, {"lib": ("lib-*", 40)}, 0),
        ([*LIBRARY, *(f"phys-{n}.example.org" for n in range(9)), "gate"],
         {"lib": ("lib-*", 40), "phys": ("phys-*", 9)}, 1),
        (["lib-1", "lib-2", "lib-new-1", "lib-new-2"],
         {"lib-new": ("lib-new-*", 2), "lib": ("lib-*", 2)}, 0),
        (["pc-lib-01a", "pc-lib-02b", "pc-phys-1", "pc-phys-2"],
         {"pc-phys": ("pc-phys-*", 2), "pc-lib": ("pc-lib-*", 2)}, 0),
        ([f"r{rack}n{node}" for rack in range(30) for node in range(3)], {"r": ("r*", 90)}, 0),
        ([f"r{rack}n{node}" for rack in (1, 2) for node in range(3)],
         {"r1n": ("r1n*", 3), "r2n": ("r2n*", 3)}, 0),
        ([*(f"Zürich-{n}" for n in range(5)), *(f"図書館{n}" for n in range(4))],
         {"Zürich": ("Zürich-*", 5), "図書館": ("図書館*", 4)}, 0),
        ([f"n{n}.lib.example.org" for n in range(4)] + [f"n{n}.phys.example.org" for n in (1, 2)],
         {"phys": ("*.phys.example.org", 2), "lib": ("*.lib.example.org", 4)}, 0),
        ([f"pc[{n}]" for n in range(3)], {"pc[": ("pc[[]*", 3)}, 0),
        ([f"{n:03}" for n in range(3)], {"machines": ("*", 3)}, 0),
        (["only"], {"only": ("only", 1)}, 0),
        (["only7.example.org"], {"only7": ("only7.example.org", 1)}, 0),
        (["lib-1", "lib-2", "lib_1", "lib_2", "lib.1", "lib.2"],
         {"lib": ("lib-*", 2), "lib-2": ("lib_*", 2), "lib-3": ("lib*", 2)}, 0),
        (["ada", "bob", "eve"], {}, 3),
        ([], {}, 0),
    ],
)  # fmt: skip
def test_names_that_begin_alike_are_together(
    names: list[str], right: dict[str, tuple[str, int]], alone: int
) -> None:
    grouping = by_name(names)
    assert patterns(grouping) == right
    assert len(grouping.alone) == alone


def test_ten_thousand_machines_make_a_few_groups() -> None:
    names = [f"room{room:02}-pc{n:03}" for room in range(10) for n in range(1_000)]
    grouping = by_name(names)
    assert patterns(grouping)["room07-pc"] == ("room07-pc*", 1_000)
    assert (len(grouping.groups), grouping.alone) == (10, ())
    crowd = by_name(f"{chr(97 + n % 26)}x{n // 700}-{n}" for n in range(10_000))
    assert 1 <= len(crowd.groups) <= MAX_GROUPS


NAMES = st.from_regex(r"[a-cä]{1,2}[-._]?[0-2]{0,2}[*?\[\]]?", fullmatch=True)


@given(st.lists(NAMES, max_size=40))
def test_a_machine_fits_the_pattern_of_its_group_and_none_before_it(names: list[str]) -> None:
    grouping = by_name(names)
    names_of_groups = [group.name for group in grouping.groups]
    assert len(set(names_of_groups)) == len(names_of_groups) <= MAX_GROUPS
    found: dict[str, str] = {}
    for name in set(names):
        fits = [g.name for g in grouping.groups if fnmatchcase(name, g.pattern)]
        if fits:
            found[name] = fits[0]
    assert found == {m: group.name for group in grouping.groups for m in group.machines}
    assert set(grouping.alone) == set(names) - found.keys()


def attributes_of(**values: list[str]) -> dict[str, dict[str, str]]:
    """Machines m0, m1, ... with these attributes; an empty text: it has none."""
    n = max(map(len, values.values()))
    return {
        f"m{k}": {name: of[k] for name, of in values.items() if k < len(of) and of[k]}
        for k in range(n)
    }


def test_an_attribute_with_a_handful_of_values_tells_the_groups() -> None:
    found = by_attribute(attributes_of(Room=["lib"] * 6 + ["phys"] * 4, Serial=list("abcdefghij")))
    assert found is not None
    assert found.attribute == "Room"
    assert [(group.name, len(group.machines)) for group in found.groups] == [
        ("lib", 6), ("phys", 4),
    ]  # fmt: skip


def test_one_that_is_named_for_a_place_is_better_than_another() -> None:
    both = attributes_of(Vendor=["x", "y"] * 5, Building=["main"] * 8 + ["annex"] * 2)
    found = by_attribute(both)
    assert found is not None
    assert found.attribute == "Building"


@pytest.mark.parametrize(
    "values",
    [
        ["one"] * 10,
        [f"own-{n}" for n in range(10)],
        ["a", "b"] * 3 + [""] * 4,
        [f"v{n % (MAX_GROUPS + 1)}" for n in range(100)],
    ],
    ids=["all alike", "each its own", "too few have it", "too many values"],
)
def test_one_that_splits_nothing_or_everything_tells_none(values: list[str]) -> None:
    assert by_attribute(attributes_of(Room=values)) is None


def test_machines_that_say_nothing_are_alone() -> None:
    found = by_attribute(attributes_of(Room=["a"] * 10 + ["b"] * 9 + [""]))
    assert found is not None
    assert found.alone == ("m19",)
    assert by_attribute({}) is None

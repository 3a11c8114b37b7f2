"""Drawing mutants, knowing those that change nothing, and how sure a share is."""

from collections import Counter

import pytest

from tests.mutation.mutants import Mutant, means_something
from tests.mutation.run import NOTICED_AT_LEAST, enough, line_of
from tests.mutation.sampling import Equivalent, draw, listed_equivalents, wilson
from tests.suite.copied_tree import TREE

SUM = Mutant("a.py", "core/ReplaceBinaryOperator_Add_Sub", 0, 7, 4, "x = a + b")


def test_the_interval_of_a_share_is_wilsons() -> None:
    """81 of 263 and 15 of 148: R. G. Newcombe, Statistics in Medicine 17 (1998), table I."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_each_place_in_the_code_is_drawn_alike_however_many_mutants_it_has() -> None:
    kinds = [SUM._replace(operator=f"core/ReplaceBinaryOperator_Add_{n}") for n in range(30)]
    lone = SUM._replace(operator="core/AddNot", line=9)
    drawn = [m for seed in range(400) for m in draw([*kinds, lone], 1, str(seed))]
    assert 150 < drawn.count(lone) < 250
    assert len(draw([*kinds, lone], 5, "1")) == 2
    assert draw([*kinds, lone], 2, "1") == draw([*kinds, lone], 2, "1")


def test_an_equivalent_mutant_is_told_by_its_file_line_and_operator() -> None:
    known = Equivalent("a.py", "x = a + b", ("Add_Sub", "AddNot"), "nobody reads x")
    assert known.fits(SUM)
    assert not known.fits(SUM._replace(operator="core/ReplaceBinaryOperator_Add_Mul"))
    assert not known.fits(SUM._replace(text="y = a + b"))
    assert not known.fits(SUM._replace(file="b.py"))


def test_every_listed_equivalent_names_a_line_that_is_there_and_gives_a_reason() -> None:
    for one in listed_equivalents():
        lines = [line.strip() for line in (TREE / one.file).read_text().splitlines()]
        assert one.line in lines, f"{one.file}: no line {one.line!r} any more"
        assert len(one.reason) > 20, f"{one.file}: {one.line!r}: {one.reason!r} is no reason"
        assert one.operators


@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        ("ReplaceComparisonOperator_Lt_LtE", True),
        ("ReplaceComparisonOperator_Is_IsNot", True),
        ("ReplaceComparisonOperator_Eq_Is", False),
        ("ReplaceBinaryOperator_Add_Sub", True),
        ("ReplaceBinaryOperator_Add_BitOr", False),
        ("ReplaceBinaryOperator_BitOr_BitAnd", True),
        ("ReplaceUnaryOperator_Delete_Not", True),
        ("ReplaceBreakWithContinue", True),
        ("ExceptionReplacer", True),
        ("AddNot", True),
        ("RemoveDecorator", False),
    ],
)
def test_what_would_be_a_real_fault_is_not_left_out(operator: str, kept: bool) -> None:
    assert means_something(f"core/{operator}") is kept


def test_too_few_noticed_over_all_rooms_fails_and_what_is_cut_off_counts_as_not_noticed() -> None:
    assert NOTICED_AT_LEAST == 0.85
    assert enough(Counter({"tried": 20, "noticed": 17, "cut off": 3}))
    assert not enough(Counter({"tried": 20, "noticed": 16, "cut off": 4, "equivalent": 9}))
    assert line_of("all", Counter({"tried": 20, "noticed": 17, "cut off": 1})) == (
        "all: 17 of 20 noticed (85.0%; 95 %: 64.0% to 94.8%), 1 of the others cut off, 0 equivalent"
    )

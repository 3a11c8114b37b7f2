"""Selection of the tests for a mutant."""

from tests.mutation.choosing import choose, hangs_after_s

DURATIONS_S = {
    "tests/near/test_a.py::test_slow": 3.0,
    "tests/near/test_a.py::test_quick": 0.5,
    "tests/near/test_a.py::test_slower": 5.0,
    "tests/nearby/test_b.py::test_quickest": 0.1,
    "tests/far/test_c.py::test_endless": 90.0,
}


def test_the_rooms_own_tests_are_asked_first_and_the_quickest_of_them_before_the_slow() -> None:
    choice = choose(DURATIONS_S, DURATIONS_S, ["tests/near"], bound_s=100.0)
    assert choice.first == ["tests/near/test_a.py::test_quick", "tests/near/test_a.py::test_slow"]
    assert choice.then == [
        "tests/near/test_a.py::test_slower",
        "tests/nearby/test_b.py::test_quickest",
        "tests/far/test_c.py::test_endless",
    ]
    assert choice.cut_off == 0


def test_the_nearest_folder_comes_before_the_next_however_quick_that_is() -> None:
    quick = {"t/b/test_b.py::test_quick": 0.1, "t/a/test_a.py::test_slow": 1.0}
    assert choose(quick, quick, ["t/a", "t/b"], 9.0).first == list(reversed(quick))
    assert choose(quick, quick, ["t/b", "t/a"], 9.0).first == list(quick)


def test_what_does_not_fit_within_the_bound_is_counted() -> None:
    choice = choose(DURATIONS_S, DURATIONS_S, ["tests/near/test_a.py"], bound_s=4.0)
    assert choice.first == [
        "tests/near/test_a.py::test_quick",
        "tests/near/test_a.py::test_slow",
        "tests/nearby/test_b.py::test_quickest",
    ]
    assert choice.then == []
    assert choice.cut_off == 2


def test_a_line_that_no_test_runs_has_nobody_to_ask() -> None:
    assert choose([], DURATIONS_S, ["tests/near"], bound_s=60.0) == ([], [], 0)


def test_a_slow_test_has_longer_until_it_hangs() -> None:
    assert hangs_after_s(0.0) == 15.0
    assert hangs_after_s(10.0) == 75.0

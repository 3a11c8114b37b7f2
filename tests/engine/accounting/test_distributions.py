"""Distributions put together: what one has counted, the other has counted too."""

import pytest

from outrider.engine.accounting.distribution import Distribution

BOUNDS = (1.0, 10.0)


def counted(exact: bool, *values: float) -> Distribution:
    made = Distribution(exact, BOUNDS)
    for value in values:
        made.add(value)
    return made


@pytest.mark.parametrize("exact", [True, False])
def test_two_put_together_are_one_that_counted_everything(exact: bool) -> None:
    one, whole = counted(exact, 0.5, 7.0), counted(exact, 0.5, 7.0, 7.0, 99.0)
    one.merge(counted(exact, 7.0, 99.0))
    assert one.save() == whole.save()
    assert (one.n, one.buckets) == (4, [1, 2, 1])


def test_what_one_has_not_kept_exactly_is_counted_all_the_same() -> None:
    rough = counted(False, 0.5)
    rough.merge(counted(True, 7.0))
    assert (rough.values, rough.buckets, rough.total) == (None, [1, 1, 0], 7.5)
    exact = counted(True, 0.5)
    exact.merge(counted(False, 7.0))
    assert (list(exact.values or ()), exact.buckets, exact.total) == ([0.5], [1, 1, 0], 7.5)

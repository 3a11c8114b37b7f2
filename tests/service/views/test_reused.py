"""The cache of expensive results, shared by all callers."""

import pytest

from outrider.service.daemon.daemon_view import CHEAP_S, CachedValue


class Making:
    """Something whose making takes a while of a clock that a test sets."""

    def __init__(self, took_s: float) -> None:
        self.now_s, self.took_s, self.made_n = 100.0, took_s, 0

    def __call__(self) -> int:
        self.now_s += self.took_s
        self.made_n += 1
        return self.made_n

    def clock(self) -> float:
        return self.now_s


def test_what_is_cheap_is_made_anew_each_time() -> None:
    making = Making(CHEAP_S / 2)
    reused = CachedValue[int](making.clock, making.clock)
    assert [reused.of(making) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("took_s", "share"), [(0.002, 0.05), (0.011, 0.025), (0.1, 0.06), (0.5, 0.11)]
)
def test_what_is_costly_takes_a_small_share_of_the_time_however_often_it_is_asked_for(
    took_s: float, share: float
) -> None:
    making = Making(took_s)
    reused = CachedValue[int](making.clock, making.clock)
    begin_s = making.now_s
    while making.now_s < begin_s + 100.0:
        reused.of(making)
        making.now_s += 0.01
    assert making.made_n * making.took_s <= 100.0 * share
    assert making.made_n > 10, "and it does not get old"


async def test_what_a_coroutine_makes_is_shown_again_too() -> None:
    making = Making(0.5)
    reused = CachedValue[int](making.clock, making.clock)

    async def make() -> int:
        return making()

    assert [await reused.of_coroutine(make) for _ in range(3)] == [1, 1, 1]
    making.now_s += 10 * making.took_s
    assert await reused.of_coroutine(make) == 2


def test_a_failure_is_not_kept() -> None:
    making = Making(0.5)
    reused = CachedValue[int](making.clock, making.clock)

    def fails() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reused.of(fails)
    assert reused.of(making) == 1

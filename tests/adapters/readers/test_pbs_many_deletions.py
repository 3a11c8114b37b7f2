"""Cost of many requests to delete: it does not depend on the number before."""

import datetime as dt

from outrider.api import ReaderOptions
from outrider_adapters.readers.pbs import PBSAccountingReader
from tests.adapters.readers.test_linear_readings import best_s


def deletions(count: int) -> bytes:
    """Return this many requests, all within an hour."""
    begin = dt.datetime(2026, 11, 21, 3, tzinfo=dt.UTC)
    times = [begin + dt.timedelta(seconds=number * 3600 / count) for number in range(count)]
    return b"".join(
        f"{at:%m/%d/%Y %H:%M:%S};D;{number}.s;requestor=a@b\n".encode()
        for number, at in enumerate(times)
    )


def test_an_hour_of_deletions_costs_no_more_the_more_they_are() -> None:
    few, many = deletions(8_000), deletions(32_000)

    def cost_s(data: bytes) -> float:
        return best_s(lambda: PBSAccountingReader(ReaderOptions()).read(data), 3)

    # one disturbed measurement is no proof
    assert any(cost_s(many) <= max(0.05, 6 * cost_s(few)) for _ in range(3))


def test_all_of_them_are_told() -> None:
    reading = PBSAccountingReader(ReaderOptions()).read(deletions(2_000), final=True)
    assert len({event[2] for event in reading.events}) == 2_000

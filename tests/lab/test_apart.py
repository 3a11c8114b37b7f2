"""No two rows of a reproduction look alike by the fields that scripts rely on."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from outrider_lab.papers.perez.grid import FULL as PEREZ_FULL
from outrider_lab.papers.perez.grid import policies_of, situations
from outrider_lab.papers.perez.rows import row_of as perez_row
from outrider_lab.papers.vengerov.grid import FULL as VENGEROV_FULL
from outrider_lab.papers.vengerov.grid import treatments
from outrider_lab.papers.vengerov.reproduction import row_of as vengerov_row
from outrider_lab.reporting.flat_rows import set_apart

PEREZ_KEY = ("row", "targets", "policy", "preset", "estimates")
VENGEROV_KEY = ("rate", "steps", "policy", "over", "preempt", "inputs", "drop_hopeless")
A_RUN = {
    "utility_k": 1.0, "utilisation_ratio": 1.0, "productivity": 1.0, "completed": 1,
    "by_window": [1.0], "outputs": None,
}  # fmt: skip


def rows_of_perez() -> Iterable[dict[str, Any]]:
    for situation in situations(PEREZ_FULL, ()):
        for one in policies_of(situation):
            yield perez_row(situation, one, {}, {})


def rows_of_vengerov() -> Iterable[dict[str, Any]]:
    return (vengerov_row(one, {1: A_RUN}) for one in treatments(VENGEROV_FULL))


@pytest.mark.parametrize(
    ("rows", "key"), [(rows_of_perez, PEREZ_KEY), (rows_of_vengerov, VENGEROV_KEY)]
)
def test_every_row_is_named_by_its_key_and_none_is_lost(rows: Any, key: tuple[str, ...]) -> None:
    every = list(rows())
    told = set_apart({"rows": every})
    assert len(told["rows"]) + len(told["variants"]) == len(every)
    assert told["variants"], "there are some"
    counted = Counter(tuple(row[name] for name in key) for row in told["rows"])
    assert [one for one, n in counted.items() if n > 1] == []

"""Whether numbers lie in a range: for whole columns, and for one row to name its fault."""

from collections.abc import Sequence

from outrider.formats.campus.campus import Floats
from outrider.formats.campus.tables import Fault, Row


def lies_within(values: Floats, most: float) -> bool:
    """Whether all values are from 0 to `most`, or nan."""
    return not bool(((values < 0) | (values > most)).any())


def beyond(row: Row, columns: Sequence[str], most: float, unit: str) -> Fault | None:
    """The fault of the first of some columns whose value is not from 0 to `most`; nan is none."""
    for column in columns:
        if row[column] < 0:
            return Fault("negative", column, "0 or more")
        if row[column] > most:
            return Fault("too large", column, f"{unit}, at most {most:.0e}")
    return None

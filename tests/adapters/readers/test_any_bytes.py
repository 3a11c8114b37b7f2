"""Reading never raises for any content of a log, and the sums are right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.api import ReaderOptions
from outrider_adapters.readers.htcondor import HTCondorLogReader
from tests.adapters.readers import samples

BEGINNINGS = {
    "text": samples.record(0),
    "json": samples.as_json(samples.RUN[1:2]),
    "xml": samples.as_xml(samples.RUN[1:2]),
}
WHOLE = {
    "text": samples.as_text(samples.RUN),
    "json": samples.as_json(samples.RUN),
    "xml": samples.as_xml(samples.RUN),
}


def check_reading(data: bytes, cut: int) -> None:
    reader = HTCondorLogReader(ReaderOptions(year=2026))
    first = reader.read(data[:cut])
    second = reader.read(data[first.consumed :], final=True)
    for reading, fed in ((first, cut), (second, len(data) - first.consumed)):
        assert 0 <= reading.consumed <= fed
        ignored, rejected = sum(reading.ignored.values()), sum(reading.rejected.values())
        assert reading.records == len(reading.events) + ignored + rejected
        assert all(event[0] >= 0 for event in reading.events)


@pytest.mark.parametrize("form", BEGINNINGS)
@given(data=st.binary(max_size=400), cut=st.integers(0, 400))
def test_arbitrary_bytes_after_a_record_never_raise(form: str, data: bytes, cut: int) -> None:
    check_reading(BEGINNINGS[form] + data, cut)


@pytest.mark.parametrize("form", WHOLE)
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=20)), max_size=6
    ),
    cut=st.integers(0, 8000),
)
def test_a_damaged_log_never_raises(
    form: str, changes: list[tuple[float, int, bytes]], cut: int
) -> None:
    data = WHOLE[form]
    for where, size, put in changes:
        at = int(where * len(data))
        data = data[:at] + put + data[at + size :]
    check_reading(data, min(cut, len(data)))


@pytest.mark.parametrize("form", ["text", "json", "xml"])
@given(
    line=st.text(
        alphabet=st.sampled_from('0123456789(). -/:TZ{}[]<>c/an="\\\n,EventTypeNumber'),
        max_size=300,
    )
)
def test_what_looks_almost_like_a_record_never_raises(form: str, line: str) -> None:
    check_reading(BEGINNINGS[form] + line.encode() + WHOLE[form], 100)

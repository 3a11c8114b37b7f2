"""Real PBS records of nine sites: each yields an event, is ignored or rejected.

The records are not part of this project; the tests skip where the folder beside it is absent.
"""

from collections import Counter
from pathlib import Path

import pytest

from outrider.api import ReaderOptions, Reading, events
from outrider_adapters.readers.pbs import PBSAccountingReader

RECORDS = "data/pbs/pbs_accounting_records.txt"
LETTERS = {"E": 29, "Q": 13, "S": 11, "A": 3, "R": 2, "D": 2}


def read(data: bytes) -> Reading:
    return PBSAccountingReader(ReaderOptions()).read(data, final=True)


@pytest.fixture(scope="module")
def lines(shared: Path) -> list[bytes]:
    """Return the records of the shared sample."""
    path = shared / RECORDS
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared folder")
    return path.read_bytes().splitlines(keepends=True)


def of_letter(lines: list[bytes], letter: str) -> list[bytes]:
    found = [line for line in lines if f";{letter};".encode() in line]
    assert len(found) == LETTERS[letter]
    return found


def test_every_real_record_is_accounted_for(lines: list[bytes]) -> None:
    assert PBSAccountingReader.recognises(b"".join(lines[:3]))
    outcomes: Counter[str] = Counter()
    for line in lines:
        reading = read(line)
        assert (reading.records, reading.consumed) == (1, len(line))
        kinds = [*reading.ignored, *reading.rejected, *(["event"] if reading.events else [])]
        assert len(kinds) == 1, line
        outcomes[kinds[0]] += 1
    assert outcomes == {"event": 58, "array_parent": 1, "ends_before_it_starts": 1}


def test_every_real_end_but_the_impossible_one_tells_a_whole_life(lines: list[bytes]) -> None:
    whole = 0
    for line in of_letter(lines, "E"):
        reported = read(line).events
        if not reported:
            assert read(line).rejected == {"ends_before_it_starts": 1}
            continue
        assert [event[1] for event in reported[:2]] == [events.SUBMITTED, events.STARTED]
        assert reported[2][1] in (events.COMPLETED, events.REMOVED)
        assert reported[0][0] <= reported[1][0] <= reported[2][0]
        assert reported[0][3].user
        assert reported[0][3].vo != "all"
        whole += 1
    assert whole == 28


def test_real_machines_and_cpus_are_found(lines: list[bytes]) -> None:
    places = Counter(
        event[3] for line in lines for event in read(line).events if event[1] == events.STARTED
    )
    expected = {
        ("lcg0766.gridpp.rl.ac.uk", 8), ("unknown", 8), ("b372", 4), ("b391", 4), ("p0221", 80),
        ("crhtc72", 5), ("crhtc82", 1), ("node2801.banette.gent.vsc", 4), ("dnode011", 64),
        ("node2612.swalot.gent.vsc", 40), ("node2135.somecluster.somedomain", 16),
        ("nid00007", 1), ("r25-n20.ph.liv.ac.uk", 1),
    }  # fmt: skip
    assert expected <= set(places)


def test_real_records_in_one_file_say_the_same_in_pieces(lines: list[bytes]) -> None:
    data = b"".join(lines)
    whole = read(data)
    assert (whole.records, whole.consumed) == (60, len(data))
    reader = PBSAccountingReader(ReaderOptions())
    reported, rest = [], b""
    for start in range(0, len(data), 1009):
        rest += data[start : start + 1009]
        reading = reader.read(rest)
        reported += reading.events
        rest = rest[reading.consumed :]
    assert reported + reader.read(rest, final=True).events == whole.events

"""Real logs: every record is an event, ignored or rejected, by an independent count.

The logs are not part of this project; the tests skip where the folder beside it is absent.
"""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from outrider.api import ReaderOptions, Reading, events
from outrider_adapters.readers.htcondor import HTCondorLogReader

LOGS = [
    "data/condor/bologna_bdp1.log",
    "data/condor/bonn_mesa.log",
    "data/condor/htcondor_test_condor.log",
    "data/condor/kuleuven_scalablefhvae.log",
    "data/condor/utexas_texplore_no_sepa.log.gz",
    "data/condor/utexas_texplore_try_long.log.gz",
    "peers/htcondor/samples/EventLog.text",
    "peers/htcondor/samples/EventLog.json",
    "peers/htcondor/samples/EventLog.xml",
    "peers/htcondor/samples/user-job.log",
]
KINDS = {
    0: events.SUBMITTED,
    1: events.STARTED,
    4: events.EVICTED,
    5: events.COMPLETED,
    9: events.REMOVED,
    10: events.SUSPENDED,
    11: events.RESUMED,
    12: events.HELD,
    13: events.RELEASED,
}
ALSO_EVICTED = (2, 7, 24)


def bytes_of(path: Path) -> bytes:
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared folder")
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def numbers_in(name: str, data: bytes) -> Counter[int]:
    """Return event numbers by a simple scan, one way for each form."""
    if name.endswith(".json"):
        found: list[int] = []
        decoder, text, at = json.JSONDecoder(), data.decode().rstrip(), 0
        while at < len(text):
            one, at = decoder.raw_decode(text, at)
            found.append(one["EventTypeNumber"])
            at += len(text[at:]) - len(text[at:].lstrip())
        return Counter(found)
    pattern = rb"^(\d\d\d) \(-?\d"
    if name.endswith(".xml"):
        pattern = rb'<a n="EventTypeNumber"><i>(\d+)</i>'
    return Counter(map(int, re.findall(pattern, data, re.MULTILINE)))


def read(data: bytes) -> Reading:
    return HTCondorLogReader(ReaderOptions(year=2026)).read(data, final=True)


@pytest.mark.parametrize("name", LOGS)
def test_every_record_of_a_real_log_is_accounted_for(shared: Path, name: str) -> None:
    data = bytes_of(shared / name)
    numbers = numbers_in(name, data)
    reading = read(data)
    assert reading.consumed == len(data)
    assert reading.rejected == {}
    assert reading.records == numbers.total()
    assert reading.records == len(reading.events) + sum(reading.ignored.values())
    told = Counter(event[1] for event in reading.events)
    for number, kind in KINDS.items():
        expected = numbers[number]
        if kind == events.EVICTED:
            expected += sum(numbers[other] for other in ALSO_EVICTED)
            expected -= reading.ignored.get("reconnect_failed", 0)
        assert told[kind] == expected, f"{number:03d}"


@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_in_pieces_gives_what_it_gives_whole(shared: Path, name: str) -> None:
    data = bytes_of(shared / name)
    options = ReaderOptions(modified_s=read(data).events[-1][0])
    whole = HTCondorLogReader(options).read(data, final=True)
    reader = HTCondorLogReader(options)
    pieces, rest = [], b""
    for start in range(0, len(data), 30_011):
        rest += data[start : start + 30_011]
        reading = reader.read(rest)
        pieces += reading.events
        rest = rest[reading.consumed :]
    assert pieces + reader.read(rest, final=True).events == whole.events


@pytest.mark.parametrize("name", LOGS)
def test_htcondors_own_reader_counts_the_same(shared: Path, name: str, tmp_path: Path) -> None:
    htcondor2 = pytest.importorskip("htcondor2")
    data = bytes_of(shared / name)
    path = tmp_path / "log"
    path.write_bytes(data)
    theirs: Counter[int] = Counter()
    try:
        with htcondor2.JobEventLog(str(path)) as log:
            for event in log.events(stop_after=0):
                theirs[int(event.type)] += 1
    except OSError as error:
        pytest.skip(f"htcondor2 stumbles over {path.name} after {theirs.total()} events: {error}")
    assert theirs.total() == read(data).records
    assert theirs == numbers_in(name, data)


def test_the_real_pool_names_its_machines_alike_with_and_without_job_ads(shared: Path) -> None:
    machines = {}
    for name in LOGS[-4:]:
        reading = read(bytes_of(shared / name))
        machines[name] = {event[3][0] for event in reading.events if event[1] == events.STARTED}
    assert set.union(*machines.values()) == {f"m{n}@127-0-0-1.testpool.local" for n in (1, 2, 3, 4)}

"""Contract tests of the reader, which need only a sample."""

from outrider_desk_log import DeskLogReader

from outrider.api import ReaderOptions
from outrider.testing import ReaderConformance

LOG = b"""\
1795231020 submit 17 ann 2
1795231021 submit 18 bob 1
1795231025 start 17 pc-4
1795231026 start 18 pc-4
1795231030 mail 17 ann
1795231049 done 17
1795231050 done 18
"""


class TestDeskLog(ReaderConformance):
    reader = DeskLogReader
    log = LOG
    jobs = 2


def test_jobs_of_two_systems_go_by_different_names():
    one, two = (DeskLogReader(ReaderOptions(system=name)).read(LOG) for name in ("one", "two"))
    assert not {event[2] for event in one.events} & {event[2] for event in two.events}


def test_a_job_keeps_its_cpus_over_a_restart():
    before, after = DeskLogReader(ReaderOptions()), DeskLogReader(ReaderOptions())
    before.read(LOG[:54])
    after.restore(before.save())
    assert [event[3] for event in after.read(LOG[54:]).events[:2]] == [("pc-4", 2), ("pc-4", 1)]

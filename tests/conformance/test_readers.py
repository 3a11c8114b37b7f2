"""Conformance tests of every reader that ships with Outrider, in all its forms."""

import pytest

from outrider.api import ReaderOptions
from outrider.plugins.finding import load_reader, log_readers
from outrider.testing import ReaderConformance
from outrider_adapters.readers.htcondor import HTCondorLogReader
from outrider_adapters.readers.pbs import PBSAccountingReader
from outrider_adapters.readers.slurm import JobcompReader, SacctReader
from outrider_adapters.readers.swf import SwfReader
from tests.adapters.readers import samples
from tests.adapters.readers.test_pbs_lines import DAY
from tests.adapters.readers.test_slurm_any_bytes import JOBCOMP, SACCT
from tests.fixtures.workload_files import HEADER, row

JOBS = [
    row(1, 0, 100, wait=5, user=1, group=1), row(2, 10, 50, cpus=4, wait=0, partition=2),
    row(3, 20, -1, wait=7, status=5), row(4, 30, 60, wait=1, status=2), row(5, 40, "x"),
]  # fmt: skip


class TestHTCondorText(ReaderConformance):
    reader = HTCondorLogReader
    log = samples.as_text(samples.RUN)
    jobs = 2


class TestHTCondorJson(TestHTCondorText):
    log = samples.as_json(samples.RUN)


class TestHTCondorXml(TestHTCondorText):
    log = samples.as_xml(samples.RUN)


class TestPBS(ReaderConformance):
    reader = PBSAccountingReader
    log = DAY
    jobs = 3


class TestSacct(ReaderConformance):
    reader = SacctReader
    log = SACCT
    jobs = 1
    options = ReaderOptions(timezone="Europe/Berlin", system="desk")
    rotates = False


class TestJobcomp(ReaderConformance):
    reader = JobcompReader
    log = JOBCOMP + JOBCOMP.replace(b"ArrayTaskId=1", b"ArrayTaskId=2")
    jobs = 2


class TestSwf(ReaderConformance):
    reader = SwfReader
    log = (HEADER + "".join(f"{line}\n" for line in JOBS)).encode()
    jobs = 3
    rotates = False


@pytest.mark.parametrize("name", log_readers())
def test_a_reader_is_found_by_the_name_it_has_and_is_tested_here(name: str) -> None:
    suites = ReaderConformance.__subclasses__()
    assert load_reader(name).name == name
    tested = [suite.reader.name for suite in suites].count(name)
    assert tested == 1, f'{tested} direct subclasses of ReaderConformance here have reader "{name}"'

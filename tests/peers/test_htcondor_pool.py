"""The pool itself: without this, a test that reads its event log proves nothing."""

import re
from xml.etree import ElementTree

import pytest

from tests.peers.pool import HTCondorPool

pytestmark = pytest.mark.htcondor

SUBMITTED, STARTED, EVICTED, ENDED, JOB_INFORMATION = 0, 1, 4, 5, 28


def test_a_returning_owner_evicts_the_job_and_it_runs_again(htcondor_pool: HTCondorPool) -> None:
    cluster = htcondor_pool.submit_sleepers(count=1, seconds=14, xml_log="evicted.xml")
    htcondor_pool.wait_for_events(STARTED, 1, cluster)
    machine = htcondor_pool.machine_of(cluster)

    htcondor_pool.owner_returns(machine)
    try:
        htcondor_pool.wait_for_events(EVICTED, 1, cluster)
        htcondor_pool.wait_for_events(STARTED, 2, cluster)
        assert htcondor_pool.machine_of(cluster) != machine
    finally:
        htcondor_pool.owner_leaves(machine)

    htcondor_pool.wait_for_events(ENDED, 1, cluster)
    assert len(htcondor_pool.events(SUBMITTED, cluster)) == 1
    assert len(htcondor_pool.events(STARTED, cluster)) == 2
    assert len(htcondor_pool.events(EVICTED, cluster)) == 1


def test_the_event_log_tells_utc_times_and_the_machine(htcondor_pool: HTCondorPool) -> None:
    cluster = htcondor_pool.submit_sleepers(count=1, seconds=1)
    htcondor_pool.wait_for_events(ENDED, 1, cluster)
    log = htcondor_pool.event_log.read_text()

    start = (
        rf"^001 \(0*{cluster}\.000\.000\) \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{{3}}Z Job executing"
    )
    assert re.search(start, log, re.MULTILINE), log[-1500:]
    assert len(htcondor_pool.events(JOB_INFORMATION, cluster)) >= 1
    assert re.search(r'^RemoteHost = "slot1@m\d@host\.pool\.test"$', log, re.MULTILINE)


def test_a_users_xml_log_tells_the_same_events_at_the_same_times(
    htcondor_pool: HTCondorPool,
) -> None:
    cluster = htcondor_pool.submit_sleepers(
        count=2, seconds=1, user="bob", xml_log="the-same-events.xml"
    )
    htcondor_pool.wait_for_events(ENDED, 2, cluster)
    text = htcondor_pool.event_log.read_text()
    xml = (htcondor_pool.work_dir / "the-same-events.xml").read_text()

    in_text = [
        (int(code), int(proc), when.replace(" ", "T"))
        for code, proc, when in re.findall(
            rf"^(\d{{3}}) \(0*{cluster}\.(\d+)\.\d+\) (\S+ \S+Z) ", text, re.MULTILINE
        )
    ]
    records = [
        {field.get("n"): field[0].text or "" for field in record}
        for record in ElementTree.fromstring(f"<log>{xml}</log>")
    ]
    in_xml = [(int(r["EventTypeNumber"]), int(r["Proc"]), r["EventTime"]) for r in records]
    assert sorted(in_xml) == sorted(in_text)
    assert {code for code, _, _ in in_xml} >= {SUBMITTED, STARTED, ENDED, JOB_INFORMATION}


def test_a_machine_that_the_pool_has_not_is_refused(htcondor_pool: HTCondorPool) -> None:
    with pytest.raises(ValueError, match="'m99' is none of m1, m2, m3, m4"):
        htcondor_pool.owner_returns("m99")

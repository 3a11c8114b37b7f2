"""Jobs that count as deferred, and for how long: one decision epoch at least."""

from outrider.engine.accounting import deferrals
from outrider.engine.accounting.deferrals import Deferrals
from outrider.model.decisions import COMPLETED_RUN, REMOVED_RUN

EPOCH_S = 600.0
LEAST_S = EPOCH_S - deferrals._SLACK_S


def test_a_job_counts_from_an_epoch_on_with_all_its_deferrals_together() -> None:
    kept = Deferrals(EPOCH_S, exact=True)
    for job, deferred_s in ((1, LEAST_S), (2, LEAST_S - 1.0), (3, 400.0), (3, 300.0)):
        kept.add(job, deferred_s)
    assert kept.by_job({4: LEAST_S, 5: 1.0, 2: 1.0}) == {
        1: LEAST_S, 2: LEAST_S, 3: 700.0, 4: LEAST_S,
    }  # fmt: skip


def test_of_jobs_that_are_gone_it_is_known_how_they_ended() -> None:
    kept = Deferrals(EPOCH_S, exact=True)
    kept.add(1, LEAST_S)
    kept.add(2, LEAST_S - 1.0)
    kept.add(3, 5.0)
    kept.cut_short(3)
    for job, later in ((1, COMPLETED_RUN), (2, COMPLETED_RUN), (3, REMOVED_RUN), (4, REMOVED_RUN)):
        kept.end(job, later)
    report = kept.report()
    assert (report["jobs"][COMPLETED_RUN], report["defer_s"][COMPLETED_RUN]) == (1, LEAST_S)
    assert (report["jobs"][REMOVED_RUN], report["defer_s"][REMOVED_RUN]) == (1, 5.0)
    assert kept.by_job({}) == {1: LEAST_S, 3: 5.0}

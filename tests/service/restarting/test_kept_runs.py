"""Each run that ended becomes one row for the journal, with who, where, when and why."""

from outrider.api import JobSpec
from outrider.journal import RunRecord
from tests.fixtures.cores import T
from tests.fixtures.small_figures import small_figures


def test_the_runs_of_a_small_site() -> None:
    core = small_figures()
    vo = JobSpec().vo
    assert core.accounting.take_runs() == [
        RunRecord("a", vo, "batch", "m1", 1, T + 10, T + 11, T + 12, 1.0, ""),
        RunRecord("d", vo, "batch", "m2", 1, T + 22, T + 24, T + 54, 30.0, "owner"),
    ]
    assert core.accounting.take_runs() == [], "each is given once"

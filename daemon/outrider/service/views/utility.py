"""View for grid brokers: utility of the site for one more job now."""

from typing import Any

from outrider.engine.accounting.report import report
from outrider.service.core.core import Core
from outrider.service.views.expected_starts import ExpectedStarts
from outrider.service.views.status import job_counts


def utility(core: Core, starts: ExpectedStarts | None = None) -> dict[str, Any]:
    """Return the utility of the site for one more job now.

    Args:
        core: the daemon's.
        starts: what is said of jobs' starts; None: that is not asked.
    """
    figures = report(core.site, core.accounting)
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "site_utility": {
            "free_machines": core.site.free_total,
            "queued_jobs": job_counts(core)["queued"],
            "mean_wait_s": figures["wait_s"]["all"]["mean"],
            "fairness": figures["fairness"]["windowed"],
            "energy_wh": figures["energy_wh"],
            "energy_measured_wh": figures["energy_measured_wh"],
        },
        "one_more_job": None if starts is None else starts.one_more(),
    }

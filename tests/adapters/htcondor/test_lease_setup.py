"""Tests of the findings of doctor about leases at an access point."""

from outrider_adapters.htcondor.lease_edits import ALL
from outrider_adapters.htcondor.pool_child import lease_finding
from tests.adapters.htcondor.leased_pool import LeasedPool, site

__all__ = ["site"]


INSTALLED = {
    "JOB_TRANSFORM_NAMES": "Other outriderleases",
    "PROTECTED_JOB_ATTRS": ", ".join(ALL),
    "QUEUE_SUPER_USERS": "root, condor outrider@site",
}


def reported(site: LeasedPool, **settings: str) -> tuple[str, str]:
    found = INSTALLED | settings
    _, state, message, _ = lease_finding(site.point, lambda name: found[name])
    return state, message


def test_what_is_not_installed_is_no_fault(site: LeasedPool) -> None:
    state, message = reported(site, JOB_TRANSFORM_NAMES="Other")
    assert (state, message.partition(";")[0]) == ("ok", "not installed")


def test_jobs_that_heed_them_are_counted(site: LeasedPool) -> None:
    site.submit(60)
    site.submit_heeding()
    message = (
        "installed; 1 of 2 waiting jobs support them; may be set by root, condor, outrider@site"
    )
    assert reported(site) == ("ok", message)


def test_attributes_that_users_may_edit_are_a_fault(site: LeasedPool) -> None:
    state, message = reported(site, PROTECTED_JOB_ATTRS="OutriderUntil, OutriderHold")
    assert (state, message) == (
        "fail",
        "users may edit OutriderHeld, OutriderPin, OutriderPrefer, OutriderFirst, OutriderBy",
    )


def test_an_access_point_that_does_not_answer_is_told(site: LeasedPool) -> None:
    site.fails(outage_ratio=1.0)
    state, message = reported(site)
    assert state == "warn"
    assert message.startswith("unknown: ")

"""One machine on the page: by an address of its own, to which its row leads."""

import pytest

from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site
from tests.service.web.test_axe import AXE, SERIOUS
from tests.service.web.test_page import DRAWN

pytestmark = pytest.mark.chromium

TOLD = "document.getElementById('machine-shown').checkVisibility()"
FACTS = "document.getElementById('machine-facts').innerText"
ROW = "document.querySelector('#machine-rows a')"


async def test_the_row_of_a_machine_leads_to_it_and_back_leads_back(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.open(f"{address}/#/machines?state=busy")
        await tab.wait_for(f"{DRAWN} && !!{ROW}")
        assert not await tab.run(TOLD)
        await tab.run(f"{ROW}.click()")
        await tab.wait_for(TOLD)
        assert await tab.run("location.hash") == "#/machines?state=busy&machine=lib-017"
        await tab.run("document.getElementById('machine-close').click()")
        await tab.wait_for(f"!{TOLD} && location.hash === '#/machines?state=busy'")
        await tab.run("history.back()")
        await tab.wait_for(TOLD)
        assert tab.complaints == []


async def test_state_runs_jobs_failed_starts_and_the_owners_week_are_told(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.look(1200, 900)
        await tab.open(f"{address}/#/machines?machine=lib%20%2F1")
        await tab.wait_for(f"{DRAWN} && {TOLD}")
        facts = await tab.run(FACTS)
        for part in (
            "busy, since 21 Nov 2026 15:40",
            "57 W, declared",
            "busy 57 W, idle 30 W, asleep unknown",
            "7 of 8 jobs in the last 24 h: a black hole; elsewhere 2 % of these users' jobs fail",
        ):
            assert part in facts
        assert "lib /1" in await tab.text_of("#machine-title")
        assert "ada" in await tab.text_of("#machine-jobs")
        assert await tab.text_of("#machine-jobs-shown") == "and 2 jobs that started later"
        runs = await tab.text_of("#machine-runs")
        assert "completed its job" in runs
        assert "wasted: failed to start" in runs
        assert "12 sessions" in await tab.text_of("#machine-week-summary")
        cell = "document.querySelectorAll('#machine-week tbody tr')[{}].cells[10].dataset.words"
        assert await tab.run(cell.format(0)) == "09:00, Monday: 1"
        assert await tab.run(cell.format(6)) == "09:00, Sunday: not seen then"
        assert tab.complaints == []
    assert "lib /1" in site.asked


async def test_a_machine_that_is_not_here_is_told_and_the_page_goes_on(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.open(f"{address}/#/machines?machine=gone")
        shown = "document.getElementById('machine-error').innerText"
        await tab.wait_for(f"{DRAWN} && {shown}.includes(\"no machine 'gone' is known here\")")
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert not await tab.run(TOLD)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_can_be_read_by_all(tab: Tab, scheme: str) -> None:
    async with open_site(SmallSite()) as address:
        await tab.look(1280, 900, scheme)
        await tab.open(f"{address}/#/machines?machine=lib-017")
        await tab.wait_for(f"{DRAWN} && {TOLD}")
        await tab.run(f"{AXE}; 0")
        assert await tab.run(SERIOUS) == []


async def test_it_fits_a_phone(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.look(360, 800, "dark")
        await tab.open(f"{address}/#/machines?machine=lib-017")
        await tab.wait_for(f"{DRAWN} && {TOLD}")
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert tab.complaints == []

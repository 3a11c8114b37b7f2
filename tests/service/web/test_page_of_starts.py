"""Expected starts on the status page: the table of waiting jobs, and the panel."""

from typing import Any

import pytest

from tests.service.web.browser import Tab
from tests.service.web.small_answers import NOW, START
from tests.service.web.small_site import SmallSite, open_site
from tests.service.web.test_page import DRAWN, HOSTILE, ask_for

pytestmark = pytest.mark.chromium

TABLE = "[...document.querySelectorAll('#jobs tr')]"


async def opened(tab: Tab, address: str) -> None:
    await tab.open(f"{address}/#/jobs")
    await tab.wait_for(DRAWN)
    await tab.wait_for("document.querySelectorAll('#jobs tr').length > 0")


async def rows_of(tab: Tab) -> list[list[str]]:
    """Return the cells of the table."""
    shown = await tab.run(f"{TABLE}.map(r => [...r.children].map(c => c.innerText))")
    assert isinstance(shown, list)
    return shown


async def test_each_job_that_waits_has_its_start_with_its_interval(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await opened(tab, address)
        heads = "[...document.querySelectorAll('#jobs-head th')].map(h => h.innerText)"
        assert (await tab.run(heads))[:5] == [
            "Job", "Expected start", "Start under fifo", "Start under bandit",
            "State",
        ]  # fmt: skip
        rows = await rows_of(tab)
        assert [row[0] for row in rows] == site.job_names, "in the order of the answer"
        assert rows[0][1:5] == [
            "18:20 (17:50 to 20:05)", "now, in the next pass", "not known", "Idle",
        ]  # fmt: skip
        told = await tab.text_of("#starts-summary")
        assert "of 86 queued jobs, 3 of them not known (backfill (EASY) run forward, " in told
        assert "computed 40 s ago)." in told
        assert "Of 1,240 starts predicted at submission, 81.0 % fell within the 80 %" in told
        assert "It cannot be verified." in await tab.text_of("#starts-under")
        assert "No starts under lowest_watts: it plans the whole queue." in told
        title = await tab.text_of("#jobs-title")
        assert title.endswith("now, 21 Nov 2026 17:40, event time")
        site.job_start = {"expected_start": None, "expected_start_answer": "not_said"}
        assert site.expected_starts is not None
        site.expected_starts = site.expected_starts | {"not_said": "the last answer is 16 min old"}
        await tab.wait_for(f"{TABLE}[0].children.length === 10")
        assert (await rows_of(tab))[0][1] == "not available"
        told = await tab.text_of("#starts-summary")
        assert told == "Expected starts are not available: the last answer is 16 min old."
        assert tab.complaints == []


async def test_another_day_is_named(tab: Tab) -> None:
    site = SmallSite()
    site.status_answer["timezone"] = "Asia/Tokyo"  # there it is 02:40 on the 22nd
    late: dict[str, Any] = START | {"high_s": NOW + 86_400.0}
    site.job_start = {"expected_start": late, "expected_start_answer": "interval"}
    async with open_site(site) as address:
        await tab.look(360, 900)
        await opened(tab, address)
        cut = (
            "[...document.querySelectorAll('#jobs .start')].map(c => c.scrollWidth > c.clientWidth)"
        )
        assert not any(await tab.run(cut)), "it is folded, not cut"
        assert (await rows_of(tab))[0][1] == "22 Nov 03:20 (22 Nov 02:50 to 23 Nov 02:40)"


async def test_no_time_is_written_before_the_zone_is_told(tab: Tab) -> None:
    site = SmallSite()
    site.status_answer["timezone"] = "Asia/Tokyo"
    site.broken = True
    async with open_site(site) as address:
        await tab.open(f"{address}/#/jobs")
        await tab.wait_for("document.getElementById('connection').dataset.state === 'lost'")
        assert await tab.run(f"{TABLE}.length") == 0
        site.broken = False
        await tab.wait_for(f"{TABLE}.length === 3")
        assert (await rows_of(tab))[0][1] == "03:20 (02:50 to 05:05)"


async def test_ten_thousand_jobs_are_read_page_by_page(tab: Tab) -> None:
    site = SmallSite()
    site.job_names = [f"{number}.0" for number in range(10_000)]
    async with open_site(site) as address:
        await opened(tab, address)
        assert await tab.text_of("#jobs-shown") == "25 of 10,000, known longest first"
        await tab.run("document.getElementById('jobs-next').click()")
        await tab.wait_for(f"{TABLE}[0].children[0].innerText === '25.0'")
        assert len(await rows_of(tab)) == 25
        site.job_names = site.job_names[:5]  # the others have started
        await tab.wait_for(f"{TABLE}.length === 5")
        assert await tab.text_of("#jobs-shown") == ""
        assert await tab.run("document.getElementById('jobs-first').hidden")
        assert await tab.run("document.getElementById('jobs-next').hidden")
        site.job_names = []
        await tab.wait_for(f"{TABLE}[0].innerText === 'no such job is here'")
        assert tab.complaints == []


async def test_the_panel_has_every_start_and_how_good_they_are(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await opened(tab, address)
        await tab.run(f"{TABLE}[1].querySelector('button').click()")
        await tab.wait_for("!!document.querySelector('#explanation .starts')")
        assert site.asked[-1] == "1043.0", "a job of the table is explained"
        await ask_for(tab, "1042.0")
        evening = "2026-11-21 18:20 UTC, between 17:50 and 20:05 (80 % interval, "
        ours = "Outrider's 5.0 min"
        lines = "[...document.querySelectorAll('.starts li')].map(li => li.innerText)"
        assert await tab.run(lines) == [
            f"Expected to start {evening}backfill (EASY) run forward, computed 40 s ago)",
            "fifo would start it now, in the next pass (computed 3.0 min ago)",
            "Start under bandit not known: a new kind of burst (computed 3.0 min ago)",
            "Start under lowest_watts not available: it plans the whole queue",
            "slurm itself expects it to start 2026-11-21 18:10:00 UTC",
            "Of 1,240 starts predicted at submission, 81.0 % fell within the 80 % interval",
            f"For 320 jobs that the batch system planned, its mean loss is 20 min, {ours}",
        ]
        assert tab.complaints == []


@pytest.mark.parametrize("width", [360, 1600])
async def test_long_and_hostile_names_stay_in_the_table(tab: Tab, width: int) -> None:
    site = SmallSite()
    site.job_names = [HOSTILE, "j" * 300]
    policies = {f"{name}-{'p' * 100}": START for name in ("a", "b", "c", "d")}
    site.job_start = site.job_start | {"expected_start_under": policies}
    async with open_site(site) as address:
        await tab.look(width, 900)
        await opened(tab, address)
        assert await tab.run(f"{TABLE}[0].children[0].textContent") == HOSTILE
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert await tab.run("document.querySelectorAll('main img, main script').length") == 0
        assert tab.complaints == []
    assert tab.dialogs == []

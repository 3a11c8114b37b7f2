"""Jobs that wait and run over time, on the page: in the window that the address names."""

import pytest

from outrider.service.web.endpoints.over_time import JobsOverTimeQuery
from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site
from tests.service.web.test_page import DRAWN

pytestmark = pytest.mark.chromium

SUMMARY = "document.querySelector('#queue-summary').innerText"
PICTURE = "document.querySelector('#queue-chart canvas').toDataURL()"
INK = """(() => {
    const canvas = document.querySelector('#queue-chart canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value) => value > 0);
})()"""


async def opened(tab: Tab, address: str, query: str = "") -> None:
    await tab.open(f"{address}/#/{query}")
    await tab.wait_for(f"{DRAWN} && !!document.querySelector('#queue-chart canvas')")


async def test_the_window_of_the_address_is_drawn_and_told_in_words(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.look(1200, 900)
        await opened(tab, address)
        assert await tab.run(SUMMARY) == (
            "waiting: 1,234.5 on average, 1,234.5 at most; running: 131 on average, 131 at most. "
            "From 20 Nov 2026 23:40 to 21 Nov 2026 17:40, means over 15 min; held jobs count as "
            "waiting."
        )
        assert await tab.text_of("#queue-lines") == "waiting: 1,234.5 running: 131"
        assert await tab.run(INK)
        day = await tab.run(PICTURE)
        await tab.run("document.querySelector('#use-windows [value=\"7d\"]').click()")
        await tab.wait_for(f"{SUMMARY}.includes('means over 60 min')")
        assert await tab.run(PICTURE) != day, "its axis has other times"
        await tab.run("history.back()")
        await tab.wait_for(f"{SUMMARY}.includes('means over 15 min')")
        assert tab.complaints == []
    asked = {query.window for query in site.asked if isinstance(query, JobsOverTimeQuery)}
    assert asked == {"24h", "7d"}


async def test_watts_are_drawn_and_said_to_be_estimated(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await opened(tab, address)
        await tab.wait_for("document.querySelector('#power-summary').innerText !== ''")
        told = await tab.text_of("#power-summary")
        assert told.startswith("1,000 W on average for runs, estimated:")
        assert "Nothing here is measured" in told
        assert "Machines with 10 % of the CPU time are not included" in told
        assert "useful: completed their job 900 W" in await tab.text_of("#power-legend")
        assert await tab.run(INK.replace("queue", "power"))
        assert await tab.run(INK.replace("queue", "use"))
        assert tab.complaints == []


async def test_it_fits_a_phone_and_a_window_turned_round(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.look(360, 800, "dark")
        await opened(tab, address)
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        wide = "document.querySelector('#queue-chart .uplot').clientWidth"
        before = await tab.run(wide)
        await tab.look(800, 360, "light")
        await tab.wait_for(f"{wide} > {before}")
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert tab.complaints == []


async def test_other_views_do_not_ask(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.open(f"{address}/#/policies")
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert not any(isinstance(query, JobsOverTimeQuery) for query in site.asked)
        assert tab.complaints == []


async def test_a_window_that_is_none_is_refused_and_the_rest_of_the_page_goes_on(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.open(f"{address}/#/?window=2h")
        await tab.wait_for(DRAWN)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        for place in ("use", "queue"):
            shown = f"document.getElementById('{place}-summary').innerText"
            await tab.wait_for(f"{shown}.includes('expected one of 1h, 24h, 7d, all')")

"""The page's views: each has an address with its filters, and all have the search."""

import asyncio
import json
from typing import Any

import pytest
from msgspec import UNSET

from outrider.service.web.endpoints.jobs import JobsQuery
from outrider.service.web.endpoints.machines import MachinesQuery
from outrider.service.web.endpoints.over_time import UseQuery
from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site
from tests.service.web.test_page import DRAWN, ask_for

pytestmark = pytest.mark.chromium

VIEWS = {
    "": "Queue and waits",
    "jobs": "Jobs",
    "users": "Users with jobs here",
    "machines": "Machines, one by one",
    "policies": "Policies",
    "outrider": "Adapters",
}
TITLES = (
    "[...document.querySelectorAll('main h2')].filter(h => h.checkVisibility())"
    ".map(h => h.firstChild.textContent.trim())"
)
RATIO = {"estimate": 0.59, "low": 0.56, "high": 0.62, "level": 0.9}


async def opened(tab: Tab, address: str, view: str = "") -> None:
    await tab.open(f"{address}/#/{view}")
    await tab.wait_for(DRAWN)


@pytest.mark.parametrize("view", VIEWS)
async def test_each_view_opens_by_its_address(tab: Tab, view: str) -> None:
    async with open_site(SmallSite()) as address:
        await opened(tab, address, view)
        titles = await tab.run(TITLES)
        assert VIEWS[view] in titles
        others = set(VIEWS.values()) - {VIEWS[view]}
        assert not others & set(titles)
        current = "[...document.querySelectorAll('#views [aria-current]')].map(a => a.hash)"
        assert await tab.run(current) == [f"#/{view}"]
        assert await tab.run("document.getElementById('explain-job').checkVisibility()")
        assert tab.complaints == []


async def test_links_lead_from_view_to_view_and_back_leads_back(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await opened(tab, address)
        for view, title in VIEWS.items():
            await tab.run(f"document.querySelector('#views [href=\"#/{view}\"]').click()")
            await tab.wait_for(f"{TITLES}.includes({title!r})")
        await tab.run("history.back()")
        await tab.wait_for(f"{TITLES}.includes({VIEWS['policies']!r})")
        await tab.run("document.querySelector('.skip').click()")
        assert VIEWS["policies"] in await tab.run(TITLES), "a place on the page is no view"
        assert tab.complaints == []


async def test_filters_stand_in_the_address_and_survive_a_reload(tab: Tab) -> None:
    site = SmallSite()

    def asked() -> set[tuple[object, object, object]]:
        return {(q.state, q.user, q.vo) for q in site.asked if isinstance(q, JobsQuery)}

    async with open_site(site) as address:
        await opened(tab, address, "jobs")
        await tab.wait_for("document.querySelectorAll('#jobs tr').length === 3")
        assert asked() == {("queued", UNSET, UNSET)}
        await tab.run(
            "(() => { const form = document.getElementById('job-filters');"
            "form.elements.state.value = 'any'; form.elements.user.value = ' ada & bob ';"
            "form.dispatchEvent(new Event('change')) })()"
        )
        await tab.wait_for("location.hash === '#/jobs?state=any&user=ada+%26+bob'")
        await tab.reload()
        await tab.wait_for(DRAWN)
        assert await tab.run("document.querySelector('#job-filters [name=user]').value") == (
            "ada & bob"
        )
        site.asked.clear()
        await tab.run("document.getElementById('jobs-first').click()")  # it asks anew
        await tab.wait_for("document.querySelectorAll('#jobs tr').length === 3")
        async with asyncio.timeout(20):
            while not asked():  # noqa: ASYNC110 - the page asks when it comes to it
                await asyncio.sleep(0.02)
        sent = "performance.getEntriesByType('resource').map(entry => entry.name).join(' ')"
        await tab.wait_for(f"{sent}.includes('user=ada%20%26%20bob')")
        assert asked() == {(UNSET, "ada & bob", UNSET)}
        assert tab.complaints == []


async def test_the_table_of_jobs_is_sorted_by_its_heads_with_the_keyboard_alone(tab: Tab) -> None:
    site = SmallSite()
    heads = "Object.fromEntries([...document.querySelectorAll('#jobs-head [aria-sort]')]"
    heads += ".map(head => [head.innerText, head.getAttribute('aria-sort')]))"

    async def press_enter_on(head: str) -> None:
        buttons = "[...document.querySelectorAll('#jobs-head button')]"
        await tab.run(f"{buttons}.find(button => button.innerText === {head!r}).focus()")
        await tab.send(
            "Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter",
            windowsVirtualKeyCode=13, text="\r",
        )  # fmt: skip

    def asked() -> object:
        return [query for query in site.asked if isinstance(query, JobsQuery)][-1].sort

    async with open_site(site) as address:
        await opened(tab, address, "jobs?state=any")
        await tab.wait_for("document.querySelectorAll('#jobs tr').length === 3")
        assert (await tab.run(heads), asked()) == ({"Job": "ascending"}, "known")
        for key, hash_now, marked in (
            ("Waiting", "state=any&sort=-waiting_s", {"Waiting": "descending"}),
            ("Waiting", "state=any&sort=waiting_s", {"Waiting": "ascending"}),
            ("CPUs", "state=any&sort=-cpus", {"CPUs": "descending"}),
            ("Job", "state=any", {"Job": "ascending"}),
            ("Job", "state=any&sort=-known", {"Job": "descending"}),
            ("Wasted", "state=any&sort=-lost_s", {"Wasted": "descending"}),
        ):
            await press_enter_on(key)
            await tab.wait_for(f"location.hash === '#/jobs?{hash_now}'")
            await tab.wait_for(f"JSON.stringify({heads}) === JSON.stringify({json.dumps(marked)})")
            assert await tab.run("document.activeElement.innerText") == key, "the focus stays"
        site.asked.clear()
        await tab.reload()
        await tab.wait_for(DRAWN)
        await tab.wait_for(f"{heads}['Wasted'] === 'descending'")
        assert asked() == "-lost_s"
        assert tab.complaints == []


async def test_states_of_jobs_are_told_in_the_batch_system_s_own_words(tab: Tab) -> None:
    site = SmallSite()
    options = "[...document.getElementById('job-filters').elements.state.options]"
    async with open_site(site) as address:
        await opened(tab, address, "jobs")
        await tab.wait_for("document.querySelectorAll('#jobs tr').length === 3")
        assert "Idle" in (await tab.text_of("#jobs tr")).split()
        assert await tab.run(f"{options}.map(option => [option.value, option.text])") == [
            ["queued", "Idle"], ["running", "Running"], ["suspended", "Suspended"],
            ["held", "Held"], ["any", "any"],
        ]  # fmt: skip
        site.state_words |= {"queued": "PENDING", "held": "PENDING"}
        await tab.run("document.getElementById('jobs-first').click()")  # it asks anew
        await tab.wait_for(f"{options}[0].text === 'PENDING (queued)'")
        assert await tab.run(f"{options}[3].text") == "PENDING (held)"
        assert tab.complaints == []


async def test_jobs_are_filtered_by_group_reason_and_age_and_the_address_has_it(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await opened(tab, address, "jobs?group=lab+3&reason=no_machine&waiting_over_s=86400")
        await tab.wait_for("document.querySelectorAll('#jobs tr').length === 3")
        form = "document.getElementById('job-filters').elements"
        assert await tab.run(f"[{form}.group.value, {form}.waiting_over_s.value]") == [
            "lab 3", "86400",
        ]  # fmt: skip
        asked = [query for query in site.asked if isinstance(query, JobsQuery)][-1]
        assert (asked.group, asked.reason, asked.waiting_over_s) == ("lab 3", "no_machine", 86_400)
        await tab.run(
            f"{form}.waiting_over_s.value = 'any'; {form}.group.value = '';"
            "document.getElementById('job-filters').dispatchEvent(new Event('change'))"
        )
        await tab.wait_for("location.hash === '#/jobs?reason=no_machine'")
        assert tab.complaints == []


async def test_machines_are_asked_for_by_state_and_group_only_where_they_are_shown(
    tab: Tab,
) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await opened(tab, address)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert not any(isinstance(query, MachinesQuery) for query in site.asked)
        await tab.run("location.hash = '#/machines?state=busy&cluster=open-access-library'")
        await tab.wait_for("document.querySelectorAll('#machine-rows tr').length === 1")
        (query, *_) = [query for query in site.asked if isinstance(query, MachinesQuery)]
        assert (query.state, query.cluster) == ("busy", "open-access-library")
        row = await tab.text_of("#machine-rows")
        assert row == "lib-017 open-access-library busy 1 of 4 57 W jobs only"
        assert tab.complaints == []


async def test_users_and_vos_have_a_table_each(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await opened(tab, address, "users")
        await tab.wait_for("document.querySelectorAll('#user-rows tr').length === 1")
        assert (
            await tab.text_of("#user-rows") == "ada physics 86 131 5 133 10 min 50 min 60 min 3 h"
        )
        vos = await tab.run("[...document.querySelectorAll('#vos tr')].map(r => r.innerText)")
        assert [row.split("\t") for row in vos] == [
            ["guests", "3 %", "0 %", "0", "unknown", "unknown", "unknown", "none"],
            [
                "physics", "46 %", "40 %", "1,234", "3.2 min", "2.5 min (60 s to 5 min)",
                "over 7 d", "10 h (25 %)",
            ],
        ]  # fmt: skip
        assert "counted in buckets (in brackets) · since" in await tab.text_of("#vos-title")
        assert tab.complaints == []


async def test_what_a_policy_would_have_saved_is_said_first_with_interval_and_window(
    tab: Tab,
) -> None:
    site = SmallSite()
    twin: dict[str, Any] = {
        "asked_s": 0.0, "took_s": 9.0, "asking_since_s": None, "stale": False, "refused": None,
        "incumbent": "random_match",
        "window": {"begin_s": 1_794_000_000.0, "end_s": 1_795_000_000.0},
        "past": {
            "bandit": {"badput_ratio": RATIO | {"estimate": 0.8}},
            "survival": {"badput_ratio": RATIO},
            "sjf": {"badput_ratio": None},
        },
        "next": None, "next_weeks": None, "next_refused": None, "next_expired": None,
        "candidates_refused": {}, "other_settings": [], "fidelity": None,
    }  # fmt: skip
    site.status_answer["twin"] = twin
    async with open_site(site) as address:
        await opened(tab, address)
        told = await tab.text_of("#headline")
        assert told.endswith(
            "Under survival it would have been 41 % less (between 44 % less and 38 % less, "
            "90 % interval; 6 Nov 2026 to 18 Nov 2026)."
        )
        site.status_answer["twin"] = twin | {"refused": "nine days on record, fourteen are needed"}
        await tab.wait_for("document.getElementById('headline').innerText.includes('nine days')")
        assert tab.complaints == []


async def test_what_was_thrown_away_is_said_of_the_last_seven_days(tab: Tab) -> None:
    site = SmallSite()
    site.status_answer["since_s"] -= 30 * 86_400.0
    wasted = "of the CPU time of all ended runs was wasted."
    async with open_site(site) as address:
        await opened(tab, address)
        await tab.wait_for("document.getElementById('headline').innerText.includes('7 days')")
        assert (await tab.text_of("#headline")).startswith(f"In the last 7 days, 20 % {wasted}")
        assert tab.complaints == []
        site.use_is_cut = True  # there were more runs than are looked at
        await tab.reload()
        await tab.wait_for("document.getElementById('headline').innerText.includes('Since 14 Nov')")
        site.use_answers = False  # the journal cannot be read: what the daemon counted is said
        await tab.reload()
        await tab.wait_for(DRAWN)
        assert (await tab.text_of("#headline")).startswith(f"Since 22 Oct 2026, 19.5 % {wasted}")
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert (await tab.text_of("#headline")).startswith(f"Since 22 Oct 2026, 19.5 % {wasted}")


async def test_an_explanation_has_an_address(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await opened(tab, address, "policies?job=1043.0")
        await tab.wait_for("!!document.querySelector('#explanation .answer')")
        assert "1043.0" in site.asked
        await ask_for(tab, "1042.0")
        await tab.wait_for("location.hash === '#/policies?job=1042.0'")
        await tab.wait_for("document.querySelector('.answer').innerText.startsWith('1042.0')")
        await tab.run("history.back()")
        await tab.wait_for("document.querySelector('.answer').innerText.startsWith('1043.0')")
        await tab.run("document.querySelector('#views [data-view=jobs]').click()")
        await tab.wait_for("!document.querySelector('#explanation .answer')")
        assert tab.complaints == []


async def test_the_search_is_the_first_field_that_the_keyboard_reaches(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await opened(tab, address, "jobs")
        reached = []
        for _ in range(8):
            for kind in ("rawKeyDown", "keyUp"):
                await tab.send(
                    "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                    windowsVirtualKeyCode=9,
                )  # fmt: skip
            reached.append(
                await tab.run("document.activeElement.id || document.activeElement.innerText")
            )
        assert reached == [
            "Skip to the numbers", "Now", "Jobs", "Users and VOs", "Machines", "Policies",
            "Outrider itself", "explain-job",
        ]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
async def test_no_view_sticks_out_of_a_phone(tab: Tab, view: str) -> None:
    async with open_site(SmallSite()) as address:
        await tab.look(360, 800)
        await opened(tab, address, view)
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        top = "document.getElementById('explain-job').getBoundingClientRect().bottom"
        assert await tab.run(top) < 800, "the search is above the fold"


async def test_a_window_of_time_stands_in_the_address_and_changes_what_is_drawn(tab: Tab) -> None:
    site = SmallSite()
    drawn = "document.querySelector('#use-summary').innerText"
    pressed = "document.querySelector('#use-windows [aria-pressed=true]').value"
    async with open_site(site) as address:
        await tab.look(1200, 900)
        await opened(tab, address)
        await tab.wait_for(f"{drawn}.startsWith('From 20 Nov 2026 17:40 to 21 Nov 2026 17:40')")
        assert "5.5 CPUs in use on average, 240 starts; 20 % of the CPU time" in await tab.run(
            drawn
        )
        assert await tab.run(pressed) == "24h"
        picture = "document.querySelector('#use-chart canvas').toDataURL()"
        day = await tab.run(picture)
        await tab.run("document.querySelector('#use-windows [value=\"7d\"]').click()")
        await tab.wait_for("location.hash === '#/?window=7d'")
        await tab.wait_for(f"{drawn}.startsWith('From 14 Nov 2026')")
        assert await tab.run(pressed) == "7d"
        assert await tab.run(picture) != day, "its axis has other times"
        await tab.run("document.querySelector('#use-windows [value=all]').click()")
        await tab.wait_for(f"{drawn}.endsWith('this is the last part.')")
        await tab.run("history.back(); history.back()")
        await tab.wait_for(f"{drawn}.startsWith('From 20 Nov 2026')")
        assert tab.complaints == []
    windows = {query.window for query in site.asked if isinstance(query, UseQuery)}
    assert windows == {"24h", "7d", "all"}

"""The status page in a real browser: its contents, and its behaviour on errors."""

import asyncio
from typing import Any

import pytest

from outrider.service.web import serve
from outrider.service.web.access import Access
from tests.service.web.browser import Tab
from tests.service.web.small_answers import T0
from tests.service.web.small_site import SmallSite, open_site

pytestmark = pytest.mark.chromium

DRAWN = "!document.getElementById('content').classList.contains('empty')"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&amp;/%2F\u202e"


async def test_the_page_says_what_the_daemon_says_and_nothing_goes_wrong(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.look(1600, 1000)
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await tab.wait_for("document.getElementById('headline').innerText.includes('20 %')")
        assert await tab.text_of("#headline") == (
            "Since 21 Nov 2026, 20 % of the CPU time of all ended runs was "
            "wasted. What another policy would have saved is not estimated yet."
        )
        assert await tab.text_of("#troubles") == (
            "5 jobs are held and will not start until released."
        )
        sentence = await tab.run("document.querySelector('#sentence').textContent")
        assert sentence == site.status_answer["sentence"]
        assert await tab.text_of("#mode") == "shadow"
        assert "saving: not estimated yet" in (await tab.text_of("#saving")).lower()
        assert "since 21 Nov 2026 09:12, event time" in await tab.text_of("#waits-title")
        energy = await tab.text_of("#energy-purposes")
        assert "12.3 kWh" in energy
        assert "owners' own use unknown" in energy
        policies = await tab.text_of("#policies")
        assert "34 % of 567 starts" in policies
        assert "none compared yet" in policies
        titles = await tab.run("[...document.querySelectorAll('h2')].map(h => h.innerText)")
        assert len(titles) == 21
        without = [title for title in titles if "event time" not in title]
        assert without == ["Needs attention"]
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert tab.complaints == []


async def test_shadow_stands_against_reality_with_intervals_or_the_reason_why_not(
    tab: Tab,
) -> None:
    site = SmallSite()
    ratio = {"estimate": 0.76, "low": 0.72, "high": 1.031, "level": 0.9}
    answer: dict[str, Any] = {
        "asked_s": T0, "took_s": 9.0, "asking_since_s": None, "stale": True, "refused": None,
        "incumbent": "random_match", "window": {"begin_s": T0 - 2e6, "end_s": T0},
        "past": {HOSTILE: {"energy_ratio": ratio, "badput_ratio": None}},
        "next": {"fifo": {"energy_ratio": ratio}}, "next_weeks": 8.0, "next_refused": None,
        "next_expired": "the load is 9 CPUs", "candidates_refused": {"sjf": "no support"},
        "other_settings": ["fifo"], "fidelity": None,
    }  # fmt: skip
    site.status_answer["twin"] = answer
    async with open_site(site) as address:
        await tab.open(f"{address}/#/policies")
        await tab.wait_for(DRAWN)
        rows = await tab.run("[...document.querySelectorAll('#twin tr')].map(r => r.innerText)")
        assert [row.split("\t")[0] for row in rows] == [
            f"{HOSTILE}, past period", "fifo, forecast (expired)", "sjf: no support",
        ]  # fmt: skip
        assert "-24 % (-28 % to +3.1 %)" in rows[0].replace("\u2212", "-")
        assert "unknown" in rows[0]
        told = await tab.text_of("#twin-summary")
        assert "Past period, 2026-10-29" in told
        assert "Forecast: the next 8.0 weeks. Forecast expired: the load is" in told
        assert "stale." in told
        site.status_answer["twin"] = answer | {"refused": "too short", "past": {}, "next": None}
        await tab.wait_for("document.querySelectorAll('#twin tr').length === 0")
        assert "Not estimated: too short." in await tab.text_of("#twin-summary")
        assert tab.complaints == []


async def test_the_page_says_what_lowers_the_mode_and_what_was_commanded(tab: Tab) -> None:
    site = SmallSite()
    lowered = {
        "at_s": T0, "command": "mode", "uid": 7, "user": "ada", "from_mode": "active",
        "to_mode": "shadow", "outcome": "failed", "why": HOSTILE, "detail": "as asked",
    }  # fmt: skip
    limit = {"most": "shadow", "at_s": T0, "was": "active", "by": "command", "why": "new disks"}
    site.status_answer |= {
        "configured_mode": "active",
        "mode_limit": limit | {"uid": 7, "user": "ada"},
        "commands": [lowered],
    }
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        told = await tab.text_of("#mode-changes")
        assert "The configured mode is active; at most shadow since 21 Nov 2026" in told
        assert "by a command of ada: new disks." in told
        assert f"mode of ada failed, active to shadow. {HOSTILE}; as asked" in told
        site.status_answer |= {"configured_mode": "shadow", "mode_limit": None, "commands": []}
        await tab.wait_for(
            "document.getElementById('mode-changes').innerText === 'no mode changes'"
        )
        assert tab.complaints == []


async def test_the_page_says_how_to_see_names(tab: Tab) -> None:
    site = SmallSite()
    site.status_answer |= {"users_hint": "names are for who signs in", "sign_in": True}
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        told = "User names are hidden: names are for who signs in. Sign in"
        assert await tab.text_of("#users") == told
        site.status_answer |= {"users_hint": "", "sign_in": False}
        await tab.wait_for("document.getElementById('users').hidden")
        assert tab.complaints == []


async def test_who_signs_in_once_is_known_to_the_whole_page(tab: Tab) -> None:
    """The browser sends what it was asked for at /sign-in along with the page's own questions."""
    token = "0123456789abcdef0123456789abcdef"
    site = SmallSite()
    async with serve(site.app(access=Access(names_token=token)), "127.0.0.1", 0) as port:
        await tab.open(f"http://127.0.0.1:{port}")
        await tab.wait_for(DRAWN)
        seen = [site.sees_names]
        await tab.open(f"http://ada:{token}@127.0.0.1:{port}/sign-in")
        await tab.wait_for(DRAWN)
        assert await tab.run("location.pathname") == "/"
        seen.append(site.sees_names)
        site.sees_names = False
        await tab.open(f"http://127.0.0.1:{port}/")
        await tab.wait_for(DRAWN)
        seen.append(site.sees_names)
        assert tab.complaints == []
    assert seen == [False, True, True]


async def test_numbers_follow_the_daemon_without_a_reload(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await tab.run("window.before = document.querySelector('#clusters li')")
        site.status_answer["jobs"]["queued"] = 87_654
        site.status_answer["clusters"].reverse()
        site.status_answer["notes"] = []
        await tab.wait_for("document.querySelector('#job-states').innerText.includes('87,654')")
        assert await tab.run("document.querySelector('#clusters li:last-child') === window.before")
        assert await tab.text_of("#notes") == "nothing to note"
        assert tab.complaints == []


async def test_a_daemon_that_has_seen_nothing_is_drawn_too(tab: Tab) -> None:
    site = SmallSite()
    answer = site.status_answer
    for part in ("jobs", "machines", "evictions"):
        answer[part] = dict.fromkeys(answer[part], 0)
    answer["energy_wh"] = dict.fromkeys(answer["energy_wh"])
    answer["power_source"] = "unknown"
    answer["wait_buckets_s"] = [[bound, 0] for bound, _ in answer["wait_buckets_s"]]
    answer["wait_s"]["all"] = dict.fromkeys(answer["wait_s"]["all"]) | {"n": 0}
    answer |= {"clusters": [], "policies": [], "adapters": [], "notes": [], "repairs": {}}
    answer |= {"goodput_s": 0.0, "badput_s": 0.0, "starts": 0}
    answer["fairness"] = dict.fromkeys(answer["fairness"]) | {"share": {}, "target": {}}
    site.job_names = []
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert "NaN" not in await tab.text_of("body")
        assert "undefined" not in await tab.text_of("body")
        assert "null" not in await tab.text_of("body")
        assert "useful: runs that completed unknown" in await tab.text_of("#energy-purposes")
        assert "unknown" in await tab.text_of("#figures")
        assert "0 kWh" not in await tab.text_of("body")
        assert tab.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (360, "light"), (1600, "light")])
async def test_nothing_sticks_out_at_any_width(tab: Tab, width: int, scheme: str) -> None:
    site = SmallSite()
    site.status_answer["clusters"][0]["name"] = "a" * 300
    site.status_answer["policies"][0]["name"] = "p" * 300
    site.status_answer["adapters"][0]["note"] = "n" * 300
    site.status_answer["sentence"] = "w" * 300
    async with open_site(site) as address:
        await tab.look(width, 900, scheme)
        await tab.open(address)
        await tab.wait_for(DRAWN)
        assert await tab.run("innerWidth") == width
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert tab.complaints == []


async def test_names_from_outside_are_shown_and_never_run(tab: Tab) -> None:
    site = SmallSite()
    answer = site.status_answer
    site.job_names = [HOSTILE]
    answer["sentence"] = HOSTILE
    answer["notes"] = [HOSTILE]
    answer["clusters"][0]["name"] = HOSTILE
    answer["policies"][0] |= {"name": HOSTILE, "description": HOSTILE}
    answer["policies"][1]["learned"] |= {"title": HOSTILE}
    answer["adapters"][0] |= {"label": HOSTILE, "note": HOSTILE, "rejected": {HOSTILE: 1}}
    answer["evictions"][HOSTILE] = 9
    answer["fairness"]["share"][HOSTILE] = 0.1
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for("!!document.querySelector('#examples button')")
        assert await tab.run("document.querySelector('#sentence').textContent") == HOSTILE
        await tab.run("document.querySelector('#examples button').click()")
        await tab.wait_for("!!document.querySelector('#explanation .answer')")
        shown = await tab.run("document.querySelector('#explanation .answer').textContent")
        assert shown.startswith(HOSTILE)
        assert await tab.run("document.querySelectorAll('main img, main script').length") == 0
        assert tab.complaints == []
    assert HOSTILE in site.asked
    assert tab.dialogs == []


async def test_the_form_explains_a_job_and_says_who_is_unknown(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await ask_for(tab, "1042.0")
        await tab.wait_for("document.querySelectorAll('#explanation article').length === 4")
        explained = await tab.text_of("#explanation")
        assert "compute-nodes" not in explained, "the numbers are in closed folds"
        assert await tab.run("document.querySelectorAll('#explanation details').length") == 3
        await tab.run(
            "document.querySelectorAll('#explanation details').forEach(d => d.open = true)"
        )
        explained = await tab.text_of("#explanation")
        assert "1042.0 waits: the batch system has not started it." in explained
        assert "waiting for 60 min" in explained
        assert "number 12 of 40 jobs of this user with the same request" in explained
        assert "bandit would keep it queued until 18:22: this choice has worked" in explained
        assert "compute-nodes 0.382" in explained
        assert "next look 21 Nov 2026 18:22" in explained
        assert "Numbers of slurm Resources" in explained
        assert "212 machines may run it · 0 jobs before it." in explained
        assert "CPUs >= 4 on a node 1,212 300" in explained
        assert "ran on lib-017 from 2026-11-21 15:40:00 UTC for 60 min: evicted" in explained
        remedies = "[...document.querySelectorAll('.remedies li')].map(li => li.innerText).join()"
        assert await tab.run(remedies) == "ask for less,wait for jobs to end there"
        await ask_for(tab, "7.7")
        await tab.wait_for("document.querySelector('#explanation').innerText.includes('no job')")
        assert await tab.text_of("#explanation") == "the daemon says: no job '7.7' is known here"
        refusals = [complaint for complaint in tab.complaints if "404" not in complaint]
        assert refusals == []  # the browser itself notes the 404


async def ask_for(tab: Tab, job: str) -> None:
    """Type a name into the form, as a user does, and press Enter."""
    await tab.run("document.getElementById('explain-job').value = ''")
    await tab.run("document.getElementById('explain-job').focus()")
    await tab.send("Input.insertText", text=job)
    for kind in ("keyDown", "keyUp"):
        await tab.send(
            "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
            windowsVirtualKeyCode=13,
        )  # fmt: skip


async def test_a_daemon_that_goes_and_returns_is_told_so(tab: Tab) -> None:
    site = SmallSite()
    state = "document.getElementById('connection').dataset.state"
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(f"{state} === 'live'")
        seen = await tab.text_of("#connection-time")
        port = int(address.rpartition(":")[2])
    await tab.wait_for(f"{state} === 'lost'")
    assert await tab.text_of("#connection-state") == "connection lost, last seen"
    assert await tab.text_of("#connection-time") >= seen
    assert "physics-teaching" in await tab.text_of("#clusters")
    async with serve(site.app(), "127.0.0.1", port):
        await tab.wait_for(f"{state} === 'live'")


async def test_a_fault_of_the_daemon_is_told_as_one(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        site.broken = True
        await tab.wait_for("document.getElementById('connection').dataset.state === 'lost'")
        told = await tab.text_of("#connection-state")
        error_text = "internal error (please report); details are in the daemon's log"
        assert told == f"the daemon says: {error_text}, last seen"


async def test_an_answer_that_cannot_be_drawn_is_not_called_a_lost_connection(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        del site.status_answer["energy_wh"]
        await tab.wait_for("document.getElementById('connection').dataset.state === 'lost'")
        told = await tab.text_of("#connection-state")
        assert told == "this page cannot show the answer, last seen"
    assert len(tab.complaints) >= 1


async def test_what_is_out_of_order_is_told_where_it_belongs(tab: Tab) -> None:
    site = SmallSite()
    answer = site.status_answer
    answer["policies"][0]["broken"] = "ZeroDivisionError: division by zero"
    down = {"up": False, "problem": "EventLog is not there", "silent": {"OldLog": T0}}
    answer["adapters"][0] |= {"inferred": False, "input_age_s": None} | down
    answer["ledger"] |= {"recording": False, "failure": "no space left on device"}
    async with open_site(site) as address:
        await tab.open(f"{address}/#/outrider")
        await tab.wait_for(DRAWN)
        told = "not asked: ZeroDivisionError: division by zero"
        assert told in await tab.text_of("#policies")
        adapter = await tab.text_of("#adapters")
        assert adapter.startswith("campus down")
        assert "newest data unknown" in adapter
        assert "inferred" not in adapter
        assert "why down EventLog is not there" in adapter
        assert "OldLog is silent since 21 Nov 2026 09:12, though jobs run" in adapter
        for place in (".state", ".pairs .warn"):
            colour = f"getComputedStyle(document.querySelector('#adapters {place}'))"
            shown = await tab.run(f"{colour}.{'backgroundColor' if 'state' in place else 'color'}")
            assert shown == "rgb(185, 81, 47)"  # the red of the light scheme
        assert "not recording: no space left on device" in await tab.text_of("#ledger")
        assert tab.complaints == []


async def test_a_hidden_page_asks_nothing(tab: Tab) -> None:
    site = SmallSite()
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1

    site.on_status = counted
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await hide(tab, hidden=True)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'paused'")
        before = count
        await asyncio.sleep(3)  # longer than one round of polling
        assert count == before
        await hide(tab, hidden=False)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert count > before
        assert tab.complaints == []


async def hide(tab: Tab, *, hidden: bool) -> None:
    """Make the page believe that it is hidden: a headless browser never hides it."""
    await tab.run(
        "Object.defineProperty(document, 'hidden', "
        f"{{configurable: true, value: {'true' if hidden else 'false'}}});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )

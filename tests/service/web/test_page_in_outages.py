"""The page while adapters have no data: every panel says so, and no figure looks fresh."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import outrider
from tests.service.running.small_site import SmallSite as RunningSite
from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site

pytestmark = pytest.mark.chromium

DRAWN = "!document.getElementById('content').classList.contains('empty')"
GAPS = """
[...document.querySelectorAll('section[data-site]')]
    .map(s => s.querySelector('.gap')?.innerText ?? '')
"""
FIGURES = "[...document.querySelectorAll('#figures dd')].map(e => e.innerText)"
SHOWN = """
[...document.querySelectorAll('section[data-site="nothing"]')].flatMap(s => [...s.children])
    .filter(e => e.tagName !== 'H2' && !e.classList.contains('gap') && e.offsetParent).length
"""
PANELS = 14


def gap(adapter: str, since_s: float | None, text: str) -> dict[str, Any]:
    """An adapter without data, as the status has it."""
    said = f"{text} from adapter {adapter}: no answer"
    return {"adapter": adapter, "since_s": since_s, "why": "no answer", "text": said}


async def test_each_panel_says_which_adapter_has_no_data_since_when(tab: Tab) -> None:
    site = SmallSite()
    labels = [adapter["label"] for adapter in site.status_answer["adapters"]]
    site.status_answer["no_data"] = [gap(labels[0], 1.8e9, "No data since 10:32")]
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'gap'")
        assert await tab.text_of("#connection-state") == "no data since 10:32"
        assert await tab.run("document.title") == "Outrider: shadow, no data since 10:32"
        lines = await tab.run(GAPS)
        part = "" if len(labels) == 1 else "What it reported is as of then."
        text = (
            f"No data since 10:32 from adapter {labels[0]}. {part or 'The figures are as of then.'}"
        )
        assert lines == [text] * PANELS
        figures = await tab.run(
            "[...document.querySelectorAll('#figures .more')].map(e => e.innerText)"
        )
        assert all(more.startswith("no data since 10:32 · ") for more in figures)
        assert "as of " in await tab.text_of("#machines-title")
        assert "now, " not in await tab.text_of("main")
        assert "no answer" in await tab.text_of("#troubles")
        looks = "getComputedStyle(document.querySelector('#machine-bar')).filter"
        assert "saturate" in await tab.run(looks)
        site.status_answer["no_data"] = []
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert await tab.run("document.querySelectorAll('.gap:not([hidden])').length") == 0
        assert await tab.run(looks) == "none"
        assert tab.complaints == []


async def test_before_any_data_no_panel_shows_a_figure_not_even_a_zero(tab: Tab) -> None:
    site = SmallSite()
    answer = site.status_answer
    answer["no_data"] = [gap(one["label"], None, "No data yet") for one in answer["adapters"]]
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'gap'")
        assert await tab.run(SHOWN) == 0
        values = await tab.run(
            "[...document.querySelectorAll('#figures dd')].map(e => e.innerText)"
        )
        assert values[0] == "unknown"
        assert not any(word in " ".join(values[:2]).split() for word in ("0", "0,"))
        assert (await tab.text_of("#headline")).startswith("No data yet from adapter")
        assert tab.complaints == []


async def test_a_running_daemon_whose_log_is_gone_says_so_everywhere_until_it_is_back(
    tab: Tab, tmp_path: Path
) -> None:
    site = RunningSite(tmp_path)
    site.log.submit(1, 2)
    site.log.start(1, 1)
    with site.daemon as daemon:
        await asyncio.to_thread(daemon.wait_until, "the log", lambda s: s["jobs"]["running"] == 1)
        await tab.open(f"{daemon.url}/")
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert site.metrics()['outrider_jobs{state="running"}'] == 1.0
        site.log.path.rename(tmp_path / "gone")
        status = await asyncio.to_thread(daemon.wait_until, "the gap", lambda s: bool(s["no_data"]))
        [said] = status["no_data"]
        assert said["adapter"] == "log"
        assert said["text"].startswith("No data since ")
        for path in ("jobs", "machines", "users", "utility", "explain/1.0"):
            [same] = daemon.get(f"/api/v1/{path}")["no_data"]
            assert (same["adapter"], same["since_s"]) == ("log", said["since_s"])
        assert daemon.get("/api/v1/utility")["site_utility"]["free_machines"] is None
        found = site.metrics()
        assert math.isnan(found['outrider_jobs{state="running"}'])
        assert math.isnan(found['outrider_machines{cluster="default",state="busy"}'])
        assert found['outrider_adapter_up{adapter="log"}'] == 0.0
        shown = await asyncio.to_thread(outrider, "status", "--url", daemon.url)
        assert "\nNO DATA    since " in shown.out
        assert "\njobs then  1 queued, 1 running" in shown.out
        for command in ("jobs", "machines", "users"):
            listed = await asyncio.to_thread(outrider, command, "--url", daemon.url)
            assert listed.err.startswith("outrider: No data since "), listed
            assert "No data" not in listed.out, "a pipe reads rows"
        await tab.wait_for("document.getElementById('connection').dataset.state === 'gap'")
        lines = await tab.run(GAPS)
        assert len(lines) == PANELS
        assert all("from adapter log. The figures are as of then." in line for line in lines)
        (tmp_path / "gone").rename(site.log.path)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        assert await tab.run("document.querySelectorAll('.gap:not([hidden])').length") == 0
        assert daemon.status()["no_data"] == []
        assert tab.complaints == []

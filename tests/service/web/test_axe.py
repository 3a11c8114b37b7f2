"""axe-core, Deque's checker of accessibility, finds nothing serious in any view.

`axe.min.js.gz` beside this file is axe-core 4.14.1 as published (MPL-2.0; it says so
itself); only this test loads it.
"""

import gzip
from pathlib import Path

import pytest

from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site
from tests.service.web.test_page import DRAWN
from tests.service.web.test_views import VIEWS

pytestmark = pytest.mark.chromium

AXE = gzip.decompress(Path(__file__).with_name("axe.min.js.gz").read_bytes()).decode()
SERIOUS = """
axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
  .filter(({impact}) => impact === 'serious' || impact === 'critical')
  .map(({id, help, nodes}) => `${id}: ${help}: ${nodes.map(node => node.target).join(', ')}`))
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
async def test_nothing_serious_is_found(tab: Tab, view: str, scheme: str) -> None:
    async with open_site(SmallSite()) as address:
        await tab.look(1280, 900, scheme)
        await tab.open(f"{address}/#/{view}?job=1042.0")
        await tab.wait_for(DRAWN)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        await tab.wait_for("!!document.querySelector('#explanation .answer')")
        await tab.run(f"{AXE}; 0")
        assert await tab.run(SERIOUS) == []


async def test_what_is_wrong_would_be_found(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await tab.run("document.querySelector('label[for=explain-job]').remove()")
        await tab.run("document.querySelector('.brand img').removeAttribute('alt')")
        await tab.run(f"{AXE}; 0")
        found = await tab.run(SERIOUS)
    assert sorted(line.partition(":")[0] for line in found) == ["image-alt", "label"]

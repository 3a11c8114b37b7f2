"""The status page for those who see little, or nothing, or use no mouse."""

import pytest

from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site

pytestmark = pytest.mark.chromium

DRAWN = "!document.getElementById('content').classList.contains('empty')"


async def test_arrow_keys_walk_through_what_was_learned(tab: Tab) -> None:
    site = SmallSite()
    async with open_site(site) as address:
        await tab.open(f"{address}/#/policies")
        await tab.wait_for(DRAWN)
        assert await tab.run("document.querySelectorAll('#learned .heat td[tabindex]').length") == 1
        await tab.run("document.querySelector('#learned .heat td[tabindex]').focus()")
        for key, code in (("ArrowRight", 39), ("ArrowRight", 39), ("ArrowDown", 40)):
            await tab.send(
                "Input.dispatchKeyEvent", type="keyDown", key=key, code=key,
                windowsVirtualKeyCode=code,
            )  # fmt: skip
        told = await tab.text_of("#learned .heat .readout")
        assert told.startswith("02:00, 1 h lost: ")
        assert await tab.run("document.querySelectorAll('#learned .heat td[tabindex]').length") == 1


async def test_headings_and_labels_make_sense_without_eyes(tab: Tab) -> None:
    async with open_site(SmallSite()) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        await tab.send("Accessibility.enable")
        tree = (await tab.send("Accessibility.getFullAXTree"))["nodes"]
    names = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node["ignored"]
    ]
    regions = [name for role, name in names if role == "region"]
    assert any(name.startswith("Energy by purpose") for name in regions)
    assert all(name for role, name in names if role in ("button", "textbox", "link", "heading"))
    assert ("textbox", "Job") in names
    assert any("up to 5 min: 133 jobs" in name for _, name in names)


CONTRASTS = """
(() => {
  const rgba = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour.a === 1) return colour;
    }
    return { r: 255, g: 255, b: 255 };
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || element.closest('.sr, noscript, .skip') || !element.checkVisibility()) continue;
    const pair = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
    found.push([(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), text]);
  }
  return found;
})()
"""


@pytest.mark.parametrize("mode", ["observe", "shadow", "canary", "active"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_all_text_has_enough_contrast(tab: Tab, scheme: str, mode: str) -> None:
    site = SmallSite()
    site.status_answer["mode"] = mode
    site.status_answer["adapters"][0]["up"] = False
    async with open_site(site) as address:
        await tab.look(1200, 900, scheme)
        await tab.open(address)
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        contrasts = await tab.run(CONTRASTS)
    assert len(contrasts) > 150
    assert [pair for pair in contrasts if pair[0] < 4.5] == []  # WCAG 2, level AA

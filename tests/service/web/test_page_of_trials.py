"""The canary trial on the status page: ratios are shown when it ends."""

from typing import Any

import msgspec
import pytest

from outrider.service.canary_trial.record import TrialRecord, trial_shown
from outrider.service.shapes.values import Compared, TrialOutcome
from tests.service.canary_trial.trials import at, trial
from tests.service.web.browser import Tab
from tests.service.web.small_site import SmallSite, open_site
from tests.service.web.test_page import DRAWN, HOSTILE

pytestmark = pytest.mark.chromium

STATED = {"energy_ratio": {"estimate": 0.75, "low": 0.7, "high": 0.8}}
WINDOW = "2010-01-04 00:00 UTC to 2010-02-02 00:00 UTC"
BEGUN = f"(survival, days drawn at random, {WINDOW}, seed 1)."


def shown(**state: Any) -> Any:
    """Return a trial in a state, as the status has it on its third day."""
    made = trial(stated=STATED, stated_as="next")
    return msgspec.to_builtins(trial_shown(TrialRecord(made, **state), at(made, 2)))


async def test_it_is_followed_from_no_trial_to_its_outcome(tab: Tab) -> None:
    site = SmallSite()
    energy = Compared(0.781, 0.6, 1.0, 7.8, 10.0, STATED["energy_ratio"], True, True)
    waste = Compared(0.9, 0.8, 1.0, 9.0, 10.0, STATED["energy_ratio"], False, True)
    unknown = Compared(None, None, None, None, None)
    measures = {"energy_ratio": energy, "badput_ratio": waste, HOSTILE: unknown}
    acts = "it acts now" if trial().acts[2] else "it does not act now"
    async with open_site(site) as address:
        await tab.open(address)
        await tab.wait_for(DRAWN)
        assert await tab.run("document.getElementById('trial').hidden")
        site.status_answer["trial"] = shown()
        await tab.wait_for("!document.getElementById('trial').hidden")
        told = await tab.text_of("#trial-summary")
        assert told.startswith(f"2 of 28 days done: {acts} until ")
        assert told.endswith(f"ratios are shown when it ends {BEGUN}")
        assert await tab.text_of("#trial-measures") == ""
        site.status_answer["trial"] = shown(state="broken_off", why=HOSTILE, ended_s=at(trial(), 2))
        begin = "document.getElementById('trial-summary').innerText.startsWith"
        await tab.wait_for(f"{begin}('Stopped')")
        told = await tab.text_of("#trial-summary")
        assert told.startswith("Stopped after 2 of 28 days: <img src=x")
        outcome = TrialOutcome(14, measures)
        site.status_answer["trial"] = shown(state="ended", outcome=outcome, ended_s=at(trial(), 28))
        await tab.wait_for(f"{begin}('Ended')")
        told = await tab.text_of("#trial-summary")
        assert (
            "days with acting compared with days without, 14 pairs of days, 90 % intervals" in told
        )
        items = "[...document.querySelectorAll('#trial-measures li')].map(i => i.innerText)"
        lines = await tab.run(items)
        assert lines[0] == (
            "energy per useful CPU time: -21.9 % (-40.0 % to +0.0 %); "
            "forecast -25.0 % (-30.0 % to -20.0 %): within"
        )
        assert lines[1].endswith("-25.0 % (-30.0 % to -20.0 %): outside, but they agree")
        assert lines[2].endswith(": not known")
        short = TrialOutcome(3, measures, "too short to say: 3 pairs of days")
        site.status_answer["trial"] = shown(state="ended", outcome=short, ended_s=at(trial(), 28))
        await tab.wait_for(f"{begin}('Ended: too short')")
        assert await tab.text_of("#trial-measures") == ""
        assert tab.complaints == []

"""Explanations of why a job is deferred or would start."""

from math import isfinite

from outrider.api import Job, SiteView
from outrider_policies.survival.prices import HOUR_S, Offer


def why(job: Job, offer: Offer, worth_wh: float, view: SiteView) -> str:
    """One sentence: the job's lost runs, its chances, and the best price against its worth."""
    prices, clusters = offer.prices, offer.prices.groups.clusters
    good = prices.good_ratio(offer.key)
    lost = f"{job.consumed_s / HOUR_S:.1f} h" if job.consumed_s else "nothing"
    chance = f"longest lost run {lost}, P(it ever completes) = {good:.2f}"
    ranked = zip(*offer.ranked, strict=True)
    best = next((each for each in ranked if view.free_n[clusters[each[1]]]), None)
    if best is None:
        return f"no machine is free; {chance}"
    price_wh, at = best
    return (
        f"{'deferred' if price_wh > worth_wh else 'would start'}: {chance}; best now "
        f"{view.cluster_names[clusters[at]]}: P(it completes{_before_reboot(view)}) = "
        f"{good * prices.completes_ratio(offer.key, at):.2f}, {_energy(price_wh)} per completion, "
        f"of which {_energy(worth_wh)} would be worth it"
    )


def _before_reboot(view: SiteView) -> str:
    reboot_s = view.next_reboot_s()
    if not isfinite(reboot_s):
        return ""
    minute = int((view.week_second() + reboot_s - view.now) // 60)
    return f" before {minute // 60 % 24:02d}:{minute % 60:02d}"


def _energy(energy_wh: float) -> str:
    return f"{energy_wh / 1000.0:.3g} kWh" if energy_wh >= 1000.0 else f"{energy_wh:.3g} Wh"

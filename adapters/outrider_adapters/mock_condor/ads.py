"""Operations on ClassAds that several modules use."""

import re
from collections.abc import Iterable
from typing import Any, Final

from outrider_adapters.htcondor.bindings import ClassAd, ExprTree

_CLOCK: Final = re.compile(r"\btime\(\)", re.IGNORECASE)


def copied(ad: ClassAd) -> ClassAd:
    """A copy of the ad with the same expressions."""
    return ClassAd(repr(ad))


def projected(ad: ClassAd, names: Iterable[str]) -> ClassAd:
    """A copy of the ad with only these attributes, where present; all if `names` is empty."""
    wanted = [name for name in names if name in ad]
    if not wanted and not list(names):
        return copied(ad)
    part = ClassAd()
    for name in wanted:
        part[name] = ad.lookup(name)
    return part


def as_of(ad: ClassAd, now_s: float) -> ClassAd:
    """The ad with ``time()`` replaced by the pool's time; ClassAds would use the real clock."""
    text = repr(ad)
    return ClassAd(at_time(text, now_s)) if _CLOCK.search(text) else ad


def at_time(expression: str, now_s: float) -> str:
    """The expression with ``time()`` replaced by the pool's time."""
    return _CLOCK.sub(str(int(now_s)), expression)


def holds(condition: ExprTree, ad: ClassAd) -> bool:
    """Whether the condition is true for the ad; undefined and error are not."""
    found = condition.eval(scope=ad)
    return found is True or (type(found) in (int, float) and found != 0)


def number(value: Any, otherwise: float) -> float:
    """An expression's value as float; `otherwise` if it is not a number."""
    return float(value) if type(value) in (int, float, bool) else otherwise

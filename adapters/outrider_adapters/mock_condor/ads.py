"""What is done to ClassAds in more than one place."""

import re
from collections.abc import Iterable
from typing import Any, Final

from outrider_adapters.mock_condor.bindings import ClassAd, ExprTree

_CLOCK: Final = re.compile(r"\btime\(\)", re.IGNORECASE)


def copied(ad: ClassAd) -> ClassAd:
    """An ad of its own with the same expressions."""
    return ClassAd(repr(ad))


def projected(ad: ClassAd, names: Iterable[str]) -> ClassAd:
    """An ad of its own with these attributes, as far as there are such; all if none is named."""
    wanted = [name for name in names if name in ad]
    if not wanted and not list(names):
        return copied(ad)
    part = ClassAd()
    for name in wanted:
        part[name] = ad.lookup(name)
    return part


def as_of(ad: ClassAd, now_s: float) -> ClassAd:
    """The ad with ``time()`` replaced: ClassAds would ask the computer's clock, not the pool's."""
    text = repr(ad)
    return ClassAd(at_time(text, now_s)) if _CLOCK.search(text) else ad


def at_time(expression: str, now_s: float) -> str:
    """The expression with ``time()`` replaced by the pool's."""
    return _CLOCK.sub(str(int(now_s)), expression)


def holds(condition: ExprTree, ad: ClassAd) -> bool:
    """Whether the condition is true of the ad; neither undefined nor an error is."""
    found = condition.eval(scope=ad)
    return found is True or (type(found) in (int, float) and found != 0)


def number(value: Any, otherwise: float) -> float:
    """A number that an expression gave, or the other where it gave none."""
    return float(value) if type(value) in (int, float, bool) else otherwise

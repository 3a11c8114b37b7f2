"""PromQL that several panels need, each with the reason for its form."""

import re
from typing import Final

CHOSEN_SITE: Final = 'instance="$instance"'


def known(vector: str) -> str:
    """A vector without its NaN: what is unknown must not make a whole sum unknown.

    NaN compares false with everything, so this drops it and nothing else.
    """
    return f"({vector} > -Inf)"


def share(part: str, whole: str) -> str:
    """One sum over another; no series where the whole is zero, for then there is no share."""
    return f"{part} / ({whole} > 0)"


def quantile(q: float, buckets: str, span: str, *by: str) -> str:
    """A quantile of what a histogram saw within a span; no series where it saw nothing."""
    labels = ", ".join(("le", *by))
    return known(f"histogram_quantile({q:g}, sum by ({labels}) (rate({buckets}[{span}])))")


def known_samples(counter: str, span: str) -> str:
    """A counter within a span, without its samples that are NaN.

    With one of those first in it, an increase would be unknown over all of the span; hence the
    subquery, which leaves out samples and not series. It asks as often as the server's rules.
    """
    return f"{known(counter)}[{span}:]"


_METRIC: Final = re.compile(r"\b(outrider_\w+)(\{[^{}]*\})?")


def at_site(expression: str) -> str:
    """A query of one Outrider: the instance that is chosen at the top of the page.

    Labels that a query names besides those in braces must not be called as a metric.
    """

    def narrowed(found: re.Match[str]) -> str:
        inside = (found[2] or "{}")[1:-1]
        return f"{found[1]}{{{', '.join(filter(None, (CHOSEN_SITE, inside)))}}}"

    return _METRIC.sub(narrowed, expression)

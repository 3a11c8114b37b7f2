"""PromQL expressions that several panels share, with the reasons for their form."""

import re
from typing import Final

CHOSEN_SITE: Final = 'instance="$instance"'


def known(vector: str) -> str:
    """Return a vector without NaN: an unknown value must not make a whole sum unknown.

    NaN compares false with everything, so this drops it and nothing else.
    """
    return f"({vector} > -Inf)"


def share(part: str, whole: str) -> str:
    """Return one sum divided by another; no series if the whole is zero."""
    return f"{part} / ({whole} > 0)"


def quantile(q: float, buckets: str, span: str, *by: str) -> str:
    """Return a quantile of a histogram over a span; no series if it has no samples there."""
    labels = ", ".join(("le", *by))
    return known(f"histogram_quantile({q:g}, sum by ({labels}) (rate({buckets}[{span}])))")


def known_samples(counter: str, span: str) -> str:
    """Return a counter over a span without its NaN samples.

    A NaN as the first sample would make the increase over the whole span unknown. The subquery
    leaves out samples, not series. Its step is the server's evaluation interval.
    """
    return f"{known(counter)}[{span}:]"


_METRIC: Final = re.compile(r"\b(outrider_\w+)(\{[^{}]*\})?")


def at_site(expression: str) -> str:
    """Restrict a query to the Outrider instance chosen at the top of the dashboard.

    Labels in a query, other than those in braces, must not have a metric's name.
    """

    def narrowed(found: re.Match[str]) -> str:
        inside = (found[2] or "{}")[1:-1]
        return f"{found[1]}{{{', '.join(filter(None, (CHOSEN_SITE, inside)))}}}"

    return _METRIC.sub(narrowed, expression)

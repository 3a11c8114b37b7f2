"""Labels for oracle information that a run gives to policies, shown in every output.

No user, and so no daemon, could know any of it: such figures are upper bounds, not promises.
"""

from outrider.formats.job_classes import ByTruth
from outrider.simulation.estimates import EXACT, LOGNORMAL


def oracle_used(class_source: str, estimate_source: str) -> list[str]:
    """Return the oracle information in use, in words; empty without any.

    Args:
        class_source: where classes come from, as `Workload.class_source`.
        estimate_source: where estimates come from, as `Workload.estimate_source`.

    >>> oracle_used("requested:900", "requested")
    []
    >>> oracle_used("truth:900", "exact")
    ['classes are made of true run times (truth:900)', 'estimates are the true run times (exact)']
    """
    labels = []
    if class_source.startswith(f"{ByTruth.__struct_config__.tag}:"):
        labels.append(f"classes are made of true run times ({class_source})")
    if estimate_source == EXACT:
        labels.append(f"estimates are the true run times ({EXACT})")
    if estimate_source.startswith(f"{LOGNORMAL}:"):
        labels.append(f"estimates are the true run times with random errors ({estimate_source})")
    return labels


def in_words(labels: list[str]) -> str:
    """Return the labels as one text for tables and pages; empty without any.

    >>> in_words(oracle_used("none", "exact"))
    'TRUE RUN TIMES USED: estimates are the true run times (exact)'
    """
    return f"TRUE RUN TIMES USED: {'; '.join(labels)}" if labels else ""

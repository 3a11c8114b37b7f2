"""What of the truth policies are told in a run: every table, report and JSON of it says so.

No user, and so no daemon, could have said any of it: figures of such runs are no promise.
"""

from outrider.formats.job_classes import ByTruth
from outrider.simulation.estimates import EXACT, LOGNORMAL


def truth_told(class_source: str, estimate_source: str) -> list[str]:
    """What is told, in words; nothing where policies know only what users could have said.

    Args:
        class_source: where classes come from, as `Workload.class_source`.
        estimate_source: where estimates come from, as `Workload.estimate_source`.

    >>> truth_told("requested:900", "requested")
    []
    >>> truth_told("truth:900", "exact")
    ['classes are made of true run times (truth:900)', 'estimates are the true run times (exact)']
    """
    told = []
    if class_source.startswith(f"{ByTruth.__struct_config__.tag}:"):
        told.append(f"classes are made of true run times ({class_source})")
    if estimate_source == EXACT:
        told.append(f"estimates are the true run times ({EXACT})")
    if estimate_source.startswith(f"{LOGNORMAL}:"):
        told.append(f"estimates are the true run times with random errors ({estimate_source})")
    return told


def in_words(told: list[str]) -> str:
    """As tables and pages say it; empty where nothing is told.

    >>> in_words(truth_told("none", "exact"))
    'THE TRUTH IS TOLD: estimates are the true run times (exact)'
    """
    return f"THE TRUTH IS TOLD: {'; '.join(told)}" if told else ""

"""Arguments of the Python API as what the commands make of their options."""

from collections.abc import Mapping, Sequence
from math import inf
from operator import index
from typing import Any

from outrider.engine.accounting.fairness import check_targets
from outrider.formats.swf.reading import VO_COLUMNS
from outrider.model.disciplines import DISCIPLINES
from outrider.model.errors import ConfigurationError, nearest
from outrider.replay.workload_terms import WorkloadTerms, workload_terms


def terms_of(
    *,
    machines: int | None = None,
    class_by: str | None = None,
    interactive_below_s: float | None = None,
    vo: str | None = None,
    group_vos_below: float | None = None,
    estimates: str | None = None,
    discipline: str | None = None,
    utilities: Mapping[str, str] | None = None,
) -> WorkloadTerms:
    """What is asked of a trace; words are those of the options. Raises `ConfigurationError`."""
    if discipline is not None:
        _one_of("discipline", discipline, DISCIPLINES)
    if vo is not None:
        _one_of("vo", vo, VO_COLUMNS)
    if machines is not None and machines < 1:
        raise ConfigurationError(f"machines = {machines}; right would be 1 or more")
    if interactive_below_s is not None and not 0.0 <= interactive_below_s < inf:
        raise ConfigurationError(
            f"interactive_below_s = {interactive_below_s}; right would be seconds, 0 or more"
        )
    options: dict[str, Any] = {
        "machines": machines,
        "class_by": class_by,
        "interactive_below": interactive_below_s,
        "vo": vo,
        "group_vos_below": group_vos_below,
        "estimates": estimates,
        "discipline": discipline,
        "backfill": None,
        "utilities": tuple(f"{name}={word}" for name, word in (utilities or {}).items()),
    }
    return workload_terms(options)


def _one_of(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ConfigurationError(f'{what} "{given}": {nearest(given, known)}')


def shares_of(shares: Mapping[str, float] | None) -> dict[str, float]:
    """Fair shares by VO, checked. Raises `ConfigurationError`."""
    given = dict(shares or {})
    check_targets(given, "shares")
    return given


def seed_of(given: Any) -> int:
    """A seed, of numpy's numbers, too, checked. Raises `ConfigurationError`."""
    try:
        seed = index(given)
    except TypeError:
        seed = -1
    if seed < 0:
        raise ConfigurationError(f"seed = {given!r}; right would be a whole number, 0 or more")
    return seed

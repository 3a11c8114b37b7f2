"""Arguments of the Python API as what the commands make of their options."""

from collections.abc import Mapping, Sequence
from math import inf
from numbers import Real
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
    if machines is not None:
        machines = _whole("machines", machines, 1)
    if interactive_below_s is not None:
        check_seconds("interactive_below_s", interactive_below_s)
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
    for vo, share in given.items():
        if not _is_number(share):
            raise ConfigurationError(
                f'shares["{vo}"] = {share!r}; right would be a number from 0 to 1'
            )
    check_targets(given, "shares")
    return given


def seed_of(given: Any) -> int:
    """A seed, of numpy's numbers, too, checked. Raises `ConfigurationError`."""
    return _whole("seed", given, 0)


def check_seconds(what: str, given: Any) -> None:
    """Refuse what is no finite number of seconds, 0 or more. Raises `ConfigurationError`."""
    if not _is_number(given) or not 0.0 <= given < inf:
        raise ConfigurationError(f"{what} = {given!r}; right would be seconds, 0 or more")


def _is_number(given: Any) -> bool:
    """Python's own or numpy's."""
    return isinstance(given, Real)


def _whole(what: str, given: Any, least: int) -> int:
    try:
        number = index(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise ConfigurationError(
            f"{what} = {given!r}; right would be a whole number, {least} or more"
        )
    return number

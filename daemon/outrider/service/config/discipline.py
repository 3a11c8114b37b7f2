"""The queue discipline in force, and why: the configuration, an adapter or the default says it."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from outrider.model.disciplines import FIRST_FIT, Discipline


class Proposal(NamedTuple):
    """What an adapter of a type says that its batch system does."""

    type: str
    discipline: Discipline


class DisciplineChoice(NamedTuple):
    """The discipline in force.

    Attributes:
        name: one of `outrider.model.disciplines.DISCIPLINES`.
        source: who decided.
        why: the same in words.
        note: what the person on call should know: adapters that propose different ones; or empty.
    """

    name: Discipline
    source: Literal["configuration", "adapter", "default"]
    why: str
    note: str = ""


def choose_discipline(
    configured: Discipline | None, proposals: Mapping[str, Proposal]
) -> DisciplineChoice:
    """The configured one; else that of the first adapter that proposes one; else `first_fit`.

    Args:
        configured: the setting `discipline`, if it is set.
        proposals: by label of the adapter, in the order of the configuration.
    """
    said = [f"{label} ({p.type}) proposes {p.discipline}" for label, p in proposals.items()]
    if configured is not None:
        others = f"; {', '.join(said)}" if said else ""
        return DisciplineChoice(configured, "configuration", f"configured{others}")
    if not proposals:
        return DisciplineChoice(
            FIRST_FIT, "default", "not configured, and no adapter knows what its batch system does"
        )
    label, first = next(iter(proposals.items()))
    note = ""
    if len({proposal.discipline for proposal in proposals.values()}) > 1:
        note = (
            f"adapters propose different disciplines: {', '.join(said)}; in force is "
            f"{first.discipline}, of the first of them ({label}); the setting discipline decides"
        )
    return DisciplineChoice(first.discipline, "adapter", f"adapter {said[0]}", note)

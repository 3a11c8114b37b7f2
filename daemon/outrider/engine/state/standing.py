"""The machines of a site as they stand, told as events."""

from collections.abc import Iterator, Sequence

from outrider.engine.state.machines import SHUT
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.events import NamedEvent


def told_of_machines(
    site: Site, names: Sequence[str], time_s: float, *, declared: bool = False
) -> Iterator[NamedEvent]:
    """What machines there are, whether jobs may start on them, and who may use them.

    Args:
        site: as it stands.
        names: of its machines, by number.
        time_s: of the events.
        declared: only of machines that somebody told of, not of those that runs alone named.
    """
    for machine, spec in enumerate(site.specs):
        if spec is None or (declared and spec.inferred):
            continue
        name = names[machine]
        yield time_s, ev.JOINED, name, spec
        shut = ev.OWNER_CAME if site.owner[machine] else ev.DRAINED
        yield time_s, shut if site.state[machine] == SHUT else ev.USABLE, name, None
    for name, machines in site.classes.items():
        yield time_s, ev.ELIGIBLE, name, tuple(names[machine] for machine in sorted(machines))

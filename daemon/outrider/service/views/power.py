"""Watts of all machines now."""

from typing import NamedTuple

from outrider.model.jobs import RUNNING
from outrider.service.core.core import Core


class Power(NamedTuple):
    """Watts in two parts that add up, and what the table says of the measured one.

    Attributes:
        table_w: by the table, of machines without a reading that holds; nan where one is unknown.
        measured_w: of the others, by their meters.
        metered_n: how many others.
        metered_table_w: by the table, of those; nan where one is unknown.
    """

    table_w: float
    measured_w: float
    metered_n: int
    metered_table_w: float


def power_w(core: Core) -> Power:
    """Watts of all machines now."""
    energy, site = core.accounting.energy, core.site
    working = [0] * len(site.specs)
    for job in site.with_run:
        if job.state == RUNNING:
            working[job.machine] += job.cpus
    table_w = measured_w = metered_table_w = 0.0
    metered_n = 0
    for m, spec in enumerate(site.specs):
        if spec is None:
            continue
        power = energy.machine(m)
        watts, by_table_w = power.measured_w(site.now), power.table_w(working[m], site.now)
        if watts is None:
            table_w += by_table_w
        else:
            measured_w += watts
            metered_n += 1
            metered_table_w += by_table_w
    return Power(table_w, measured_w, metered_n, metered_table_w)

"""Machines: their specification, given by an adapter when a machine joins."""

import msgspec

from outrider.model.resources import Resources


class MachineSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a machine when it joins the site.

    Attributes:
        cluster: name of the group of machines that are located and used together.
        cpus: CPUs that jobs may use, at least 1.
        active_w: watts while a job or an owner uses it, or None if unknown.
        idle_w: watts while it is on and unused, or None.
        sleep_w: watts while it sleeps, or None.
        inferred: True if the machine is only known because a job ran there: its owners,
            capacity and idle time are guesses, and every decision on it is marked so.
        usable: whether jobs may start on it as soon as it joins.
        speed: work per second and CPU, relative to the machine that run times refer to.
        resources: its resources besides CPUs; undeclared ones are not checked.
    """

    cluster: str = "default"
    cpus: int = 1
    active_w: float | None = None
    idle_w: float | None = None
    sleep_w: float | None = None
    inferred: bool = False
    usable: bool = True
    speed: float = 1.0
    resources: Resources | None = None

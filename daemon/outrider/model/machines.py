"""Machines: what an adapter can tell about one when it joins."""

import msgspec

from outrider.model.resources import Resources


class MachineSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a machine when it joins the site.

    Attributes:
        cluster: machines that sit and are used together.
        cpus: CPUs jobs may use, at least 1.
        active_w: watts while a job or an owner is busy on it, or None when nobody knows.
        idle_w: watts while it is on and nobody uses it, or None.
        sleep_w: watts while it sleeps, or None.
        inferred: True if the machine is only known because a job ran there: its owners, its
            capacity and its idle time are guesses, and every decision on it says so.
        usable: jobs may start on it from the moment it joins.
        speed: work done per second and CPU, relative to the machine that run times are told of.
        resources: what it has besides CPUs; what is not declared is not checked.
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

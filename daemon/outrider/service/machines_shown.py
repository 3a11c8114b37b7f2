"""The one state of a machine that a page or a metric shows."""

from outrider.service.core import Core


def machine_state(core: Core, m: int) -> str:
    """One of ``busy``, ``owner``, ``free``, ``asleep``, ``closed``.

    A machine whose owner sits there is `owner` even while a job still runs; one that sleeps may
    be free to jobs all the same (it wakes for them), and is shown as `asleep`.
    """
    site = core.site
    if site.owner[m]:
        return "owner"
    if site.busy[m]:
        return "busy"
    if core.accounting.energy.is_asleep(m, site.now):
        return "asleep"
    return "free" if site.state[m] else "closed"

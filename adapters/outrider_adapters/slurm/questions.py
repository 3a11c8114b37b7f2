"""What is asked of Slurm when somebody wants to know why a job waits."""

from outrider.api import PeerError, WaitingReason
from outrider_adapters.slurm.commands import SEPARATOR, SlurmCommands
from outrider_adapters.slurm.job_steps import WAITING, is_waiting, seen
from outrider_adapters.slurm.queue_rows import FIELDS, QueueRow, row_of
from outrider_adapters.slurm.reasons import Asked, waiting_reason
from outrider_adapters.slurm.slurm_watch import SlurmWatch

_BESIDE = ("Dependency", "QOS", "PriorityLong")


def ask_why(watch: SlurmWatch, commands: SlurmCommands, name: str) -> WaitingReason | None:
    """Why a job is not running; None for one that is, that has left, or that is another's.

    Args:
        watch: of the Slurm.
        commands: of it.
        name: of the job.

    Raises:
        PeerError: Slurm does not answer.
    """
    cluster, _, job = name.rpartition(":")
    kind = watch.jobs.kind(job) if cluster == watch.jobs.cluster else None
    if kind is None:
        return None
    # of a task alone squeue would not say how many of its array may run
    lines = commands.rows((*FIELDS, *_BESIDE), "-a", "-t", "all", "-j", job.partition("_")[0])
    told = [(text, *_parsed(text)) for text in filter(None, lines)]
    mine = next(((text, row, beside) for text, row, beside in told if job in row.jobs), None)
    if mine is None or not is_waiting(mine[1]):
        return None
    text, shown, (dependency, qos, priority) = mine
    row = watch.jobs.as_its_user_left_it(shown)
    asked = Asked(
        job=job,
        row=row,
        shown_eligible_s=shown.eligible_s,
        row_id=text.partition(SEPARATOR)[0],
        dependency="" if dependency == "(null)" else dependency,
        qos="" if qos == "(null)" else qos,
        ahead=_ahead(commands, row.partitions, int(priority), watch.now_s),
        kind=kind,
        nodes=watch.nodes,
        partitions=watch.partitions,
    )
    return waiting_reason(asked, watch.eligibility)


def _parsed(text: str) -> tuple[QueueRow, list[str]]:
    """A row of `FIELDS`, and what stands behind them."""
    values = text.split(SEPARATOR)
    try:
        row = row_of(SEPARATOR.join([*values[: len(FIELDS)], ""]))
    except ValueError as error:
        raise PeerError(f"squeue prints what cannot be read: {error}") from error
    return row, values[len(FIELDS) : -1]


def _ahead(
    commands: SlurmCommands, partitions: tuple[str, ...], priority: int, now_s: float
) -> tuple[int, int]:
    """Jobs of higher priority that wait for these partitions, and the CPUs they want."""
    fields = (*FIELDS, "PriorityLong")
    lines = commands.rows(fields, "-a", "-t", "PD", "-p", ",".join(partitions))
    cpus: dict[str, int] = {}
    for line in filter(None, lines):
        row, [theirs] = _parsed(line)
        if int(theirs) > priority and seen(row, now_s).status == WAITING:
            cpus |= dict.fromkeys(row.jobs, row.cpus)  # one that may use several comes for each
    return len(cpus), sum(cpus.values())

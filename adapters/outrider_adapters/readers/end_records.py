"""Records of a job's end, which tell its whole life: PBS `E`, sacct rows, jobcomp lines."""

from typing import Final

from outrider.api import JobSpec, NamedEvent, events

KILLED: Final = "killed"
REMOVED: Final = "removed"


def life_of(
    job: str,
    spec: JobSpec,
    submit_s: float | None,
    start_s: float | None,
    end_s: float,
    machine: str,
    cpus: int,
    removed_for: str = "",
) -> list[NamedEvent]:
    """Submitted, started and ended, at the times that the record gives.

    What other records told already is found to be a duplicate by the event merger: the submission
    because it is marked as recalled, the start because its time and machine are the same.

    Args:
        job: its id, in the batch system's spelling.
        spec: what its user said.
        submit_s: Unix seconds, or None where the record does not say.
        start_s: of the run that ended, or None if it never ran.
        end_s: of that run, or when the job left the queue.
        machine: the (first) host of the run.
        cpus: CPUs of the run, over all its hosts.
        removed_for: one of the eviction reasons if the run did not complete its job.
    """
    told: list[NamedEvent] = []
    if submit_s is not None:
        recalled = JobSpec(
            user=spec.user, vo=spec.vo, job_class=spec.job_class, cpus=spec.cpus,
            estimate_s=spec.estimate_s, eligible_s=spec.eligible_s, recalled=True,
        )  # fmt: skip
        told.append((submit_s, events.SUBMITTED, job, recalled))
    if start_s is not None:
        told.append((start_s, events.STARTED, job, (machine, cpus)))
    if removed_for:
        told.append((end_s, events.REMOVED, job, removed_for))
    else:
        told.append((end_s, events.COMPLETED, job, None))
    return told

"""Where the jobs of a record may run, as far as a campus can say it: in whole clusters."""

from collections.abc import Sequence

from outrider.formats.campus.campus import ONLY_SEPARATOR
from outrider.formats.campus.optional_columns import only_text
from outrider.replay.site_record import RecordedJob, SiteRecord


def recorded_only(record: SiteRecord, clusters: Sequence[str]) -> dict[str, str | None]:
    """The value of the column ``only`` by eligibility class; None for a class it cannot express.

    Args:
        record: what was recorded.
        clusters: names, in the order of the campus.
    """
    asked = {job.spec.eligible for job in record.jobs} - {""}
    return {name: _clusters_of(record, name, clusters) for name in asked}


def _clusters_of(record: SiteRecord, name: str, clusters: Sequence[str]) -> str | None:
    members = record.classes.get(name, set()) & record.machines.keys()
    inside = {record.machines[number].spec.cluster for number in members}
    whole = {
        number for number, machine in record.machines.items() if machine.spec.cluster in inside
    }
    if not members or members != whole or any(ONLY_SEPARATOR in cluster for cluster in inside):
        return None
    return "" if members == record.machines.keys() else only_text(inside, clusters)


def possible_jobs(record: SiteRecord, only: dict[str, str | None]) -> list[RecordedJob]:
    """The jobs that fit on some machine where the campus lets them run, by submission.

    A campus refuses the others: see ``outrider.formats.campus.rows``.

    Args:
        record: what was recorded.
        only: as from `recorded_only`.
    """
    widest: dict[str, int] = {}
    for machine in record.machines.values():
        cluster = machine.spec.cluster
        widest[cluster] = max(widest.get(cluster, 0), machine.cpus)

    def most(job: RecordedJob) -> int:
        names = only.get(job.spec.eligible)
        places = names.split(ONLY_SEPARATOR) if names else widest
        return max((widest[name] for name in places), default=job.cpus)

    possible = (job for job in record.jobs if job.cpus <= most(job))
    return sorted(possible, key=lambda job: job.submit_s)

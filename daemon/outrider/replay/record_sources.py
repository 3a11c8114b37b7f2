"""Where a record of a site comes from: the journal of a daemon, or the logs of a batch system."""

from collections.abc import Callable, Sequence
from pathlib import Path

from outrider.journal import Journal
from outrider.journal.journal_events import JournalEvents
from outrider.model.errors import TraceError
from outrider.replay.ingestion import Ingestion
from outrider.replay.log_files import LogFile
from outrider.replay.site_record import SiteRecord


def record_of_ledger(path: Path) -> SiteRecord:
    """What a daemon saw: the inputs of its journal, through an event merger like its own.

    Raises:
        LedgerError: the file cannot be read.
        TraceError: it holds no events.
    """
    with Journal(path, read_only=True) as journal:
        events = JournalEvents()
        record = SiteRecord(events.merger.normaliser)
        record.take_all(events.all_of(journal))
    if not record.machines and not record.jobs:
        raise TraceError(
            f"{path}: holds no events of a site; right would be the journal of a daemon (what a "
            "replay writes are decisions only)"
        )
    record.close(events.seen_s)
    return record


def record_of_logs(
    files: Sequence[LogFile], progress: Callable[[float], None] | None = None
) -> SiteRecord:
    """What a batch system wrote in its logs, merged by time.

    Raises:
        TraceError: a file cannot be read to its end, or there is no job in any.
    """
    ingestion = Ingestion(files)
    record = SiteRecord(ingestion.merger.normaliser)
    record.take_all(ingestion.events(progress))
    if not record.jobs:
        names = ", ".join(str(file.path) for file in files)
        raise TraceError(f"{names}: no job is told of; right would be a log of a batch system")
    record.close()
    for file in files:
        record.warnings += [f"{file.path}: {text}" for text in dict.fromkeys(file.counts.warnings)]
        record.warnings += [
            f"{file.path}: {n} records were rejected: {reason}"
            for reason, n in file.counts.rejected.items()
        ]
    return record

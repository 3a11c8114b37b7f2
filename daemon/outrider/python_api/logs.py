"""`outrider.ingest`: what the logs of a batch system tell."""

from collections.abc import Sequence
from pathlib import Path

from outrider.model.errors import ConfigurationError
from outrider.python_api.fields import Fields
from outrider.replay.log_files import LogFile
from outrider.report.logs import read_logs


def ingest(
    *files: Path | str,
    format: str = "auto",  # noqa: A002 - as --format
    fields: Sequence[str] = (),
    year: int | None = None,
    timezone: str | None = None,
    system: str | None = None,
) -> Fields:
    """Read the logs a batch system wrote and tell what happened, as ``outrider ingest --json``.

    Args:
        files: paths; several are merged by time, and what two tell alike counts once.
        format: the reader that understands them; auto looks at each.
        fields: column names of a table without a header.
        year: of the last event of each file, for dates without one.
        timezone: of dates that name none, as ``Europe/Berlin``; None: UTC.
        system: schedd or Slurm cluster whose jobs these are, where records do not name it.

    Returns:
        The document, its fields as attributes: `jobs`, `wait_s` (seconds), `goodput_s`,
        `badput_s` (CPU-seconds), `offenders` and so on; `warnings` has what people should know.

    Raises:
        TraceError: a file cannot be read to its end.
        ConfigurationError: no file is given, or an argument is wrong.
    """
    if not files:
        raise ConfigurationError("ingest: no file is given; right would be the path of a log")
    logs = [
        LogFile(file, format, year=year, timezone=timezone, fields=tuple(fields), system=system)
        for file in dict.fromkeys(map(Path, files))
    ]
    return Fields(read_logs(logs))

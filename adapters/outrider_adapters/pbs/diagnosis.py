"""What a site should know of a PBS server before it lets Outrider watch it."""

from collections.abc import Iterator

from outrider_adapters.pbs.dialects import dialect_of, pbs_commands
from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import CommandError

Finding = tuple[str, str, str, str]
"""What, state (ok, warn, fail), what was found, and a remedy: as ``outrider doctor`` lists it."""


def diagnosed(settings: PBSSettings) -> Iterator[Finding]:
    """Who answers, in which dialect, and whether ends that nobody saw are known."""
    commands = pbs_commands(settings)
    try:
        dialect = dialect_of(settings, commands)
        jobs, nodes = dialect.jobs(), dialect.nodes()
    except CommandError as error:
        remedy = 'name the folder of qstat and the server: commands = "/opt/pbs/bin", server = ...'
        yield "server", "fail", str(error), remedy
        return
    found = f"{dialect.name}: {len(jobs.entries)} jobs, {len(nodes.entries)} nodes"
    yield "server", "ok", found, ""
    if jobs.rejected:
        found = f"{len(jobs.rejected)} jobs cannot be read, such as {jobs.rejected[0]}"
        yield "jobs", "warn", found, "their users wrote attributes into their environments"
    if dialect.is_torque:
        found = "jobs that have ended are known for keep_completed seconds"
        yield "history", "ok", found, ""
        return
    try:
        server = commands.run("qstat", "-B", "-f")
    except CommandError as error:
        yield "history", "warn", str(error), ""
        return
    if "job_history_enable = True" in server:
        yield "history", "ok", "qstat -x tells how jobs ended", ""
    else:
        found = "the server keeps no history: jobs that leave count as removed"
        yield "history", "warn", found, "qmgr -c 'set server job_history_enable = True'"

"""``outrider run-twin``: the process beside the daemon that asks the shadow twin."""

import threading
from pathlib import Path

import click

from outrider.cli.options import file_path
from outrider.cli.printing import echo


@click.command("run-twin", short_help="Ask the shadow twin from time to time, beside the daemon.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The daemon's configuration file.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Ask now, say what it answers, and end.")
@click.option("--parent", type=int, hidden=True, help="End when this process is gone.")
def command(config: Path, once: bool, parent: int | None) -> int:
    """Ask the shadow twin from time to time, beside the daemon.

    Use it from systemd (outrider-twin.service, which install-service writes); a daemon that systemd
    did not start runs it by itself. At a low priority ([twin] nice) it simulates the past of the
    site anew under each policy of the configuration, as `outrider twin` does, from the daemon's
    journal, which it only reads. The answer, or why there is none, goes into twin.json in the state
    directory, where the daemon finds it. How often: every `every_s` seconds ([twin]; 0:
    never, and it ends at once). Beside that it says each minute when the waiting jobs are expected
    to start, in starts.json.

    Exit code of --once: 1: the twin could not be asked. That it refuses is an answer.

    Example:
      outrider run-twin --config /etc/outrider/outrider.toml
      outrider run-twin --config outrider.toml --once
    """
    from outrider.cli.configuration import load
    from outrider.service.config.declarations import twin_of
    from outrider.service.host.logs import Mode, set_up_logs
    from outrider.service.twin.candidates_cycle import CandidatesCycle
    from outrider.service.twin.cycle import TwinCycle, exit_on_signals, lower_priority
    from outrider.service.twin.starts_cycle import OneMoreCycle, StartsCycle

    loaded = load(config)
    set_up_logs(Mode("twin"), style=loaded.config.log_format, zone=loaded.config.timezone)
    exit_on_signals(parent)
    lower_priority(twin_of(loaded.config).nice)
    cycle = TwinCycle(loaded)
    if not once:
        stopped = threading.Event()
        starts = StartsCycle(
            cycle.folder, cycle.journal, lambda: twin_of(cycle.loaded.config).starts_every_s,
            candidates=CandidatesCycle(cycle.journal, lambda: cycle.loaded),
            one_more=OneMoreCycle(lambda: cycle.loaded),
        )  # fmt: skip
        threading.Thread(target=starts.run, args=(stopped,), name="starts", daemon=True).start()
        try:
            cycle.run()
        finally:
            stopped.set()
        return 0
    answer, failed = cycle.once()
    refused = answer["refused"]
    echo(f"answered about {', '.join(answer['past'])}" if refused is None else refused)
    return int(failed)

"""``outrider run-twin``: the twin process, which simulates the site for the daemon."""

import threading
from pathlib import Path

import click

from outrider.cli.options import file_path
from outrider.cli.printing import echo


@click.command("run-twin", short_help="Run the twin process (used by outrider-twin.service).")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The daemon's configuration file.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Run once now, print the result and exit.")
@click.option("--parent", type=int, hidden=True, help="Exit when this process ends.")
def command(config: Path, once: bool, parent: int | None) -> int:
    """Run the twin process (used by outrider-twin.service).

    Run it from systemd (outrider-twin.service, which install-service writes); a daemon that systemd
    did not start runs it automatically. At a low priority ([twin] nice) it simulates the past of
    the site under each policy of the configuration, as `outrider twin` does, from the daemon's
    journal, which it only reads. The daemon finds the answer, or why there is none, in twin.json in
    the state directory. It runs every `every_s` seconds ([twin]; 0: never, and the process exits
    immediately). Each minute it also writes the expected starts of waiting jobs to starts.json.

    Exit code 1 of --once: the twin failed. A refusal is an answer (exit code 0).

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

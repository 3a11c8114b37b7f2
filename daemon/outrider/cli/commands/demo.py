"""``outrider demo``: the daemon alongside a simulated campus."""

import click


@click.command("demo", short_help="Run the daemon in shadow mode alongside a simulated campus.")
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65_535), default=0, show_default=True,
    help="Port of the page on 127.0.0.1; 0 takes a free one.",
)  # fmt: skip
@click.option(
    "--machines", metavar="N", type=click.IntRange(min=1), default=120, show_default=True,
    help="Desktop machines of the campus.",
)  # fmt: skip
@click.option(
    "--weeks", metavar="W", type=click.FloatRange(min=0, min_open=True), default=8.0,
    show_default=True, help="Simulated weeks during which jobs and owners arrive.",
)  # fmt: skip
@click.option(
    "--speed", type=click.FloatRange(min=0), default=60.0, show_default=True,
    metavar="FACTOR", help="Simulated seconds per real second; 60 shows an hour in a minute.",
)  # fmt: skip
@click.option(
    "--seed", metavar="S", type=click.IntRange(min=0), default=1, show_default=True,
    help="Seed of the campus; the same seed makes the same campus.",
)  # fmt: skip
@click.option(
    "--for", "for_s", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
    help="Stop automatically after this many real seconds.",
)  # fmt: skip
@click.option("--verbose", is_flag=True, help="Show the daemon's log lines, too.")
@click.option(
    "--mqtt", is_flag=True,
    help="Publish to an MQTT broker inside this process too (pip install 'outrider[broker]').",
)  # fmt: skip
def command(
    port: int,
    machines: int,
    weeks: float,
    speed: float,
    seed: int,
    for_s: float | None,
    verbose: bool,
    mqtt: bool,
) -> int:
    """Run the daemon in shadow mode alongside a simulated campus.

    Use it for a first look: it needs no batch system, no configuration and no data. The campus has
    owners who come and go, and its own scheduler, which starts jobs as HTCondor would. Outrider
    watches, learns and shows what it would have done. The first line printed is the address of the
    live page. With --mqtt the second is the broker's address: any MQTT client can subscribe there
    to the decisions. Log lines need --verbose. Stop it with Ctrl-C.

    Example:
      outrider demo --machines 300 --speed 600
    """
    from outrider.service.demo.demo import run_demo

    return run_demo(
        port=port, machines=machines, weeks=weeks, speed=speed, seed=seed, for_s=for_s, mqtt=mqtt,
        verbose=verbose,
    )  # fmt: skip

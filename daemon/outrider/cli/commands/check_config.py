"""``outrider check-config``: validation of a configuration, and what it means."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.options import file_path, json_option
from outrider.cli.printing import echo, print_json, shown
from outrider.model.errors import ConfigurationError, OutriderError, PluginError

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig


@click.command("check-config", short_help="Check a configuration file and show what it means.")
@click.argument("file", required=False, type=file_path(dir_okay=False), metavar="FILE")
@click.option("--example", is_flag=True, help="Print an example with every setting explained.")
@json_option
def command(file: Path | None, example: bool, as_json: bool) -> None:
    """Check a configuration file and show what it means.

    Use it before `outrider run` and before a reload. It checks every key, plugin and setting as the
    daemon would, reads the named files of certificates, keys, tokens and passwords, and changes
    nothing. Exit code 2: something is wrong; the message shows file, place, value and what is
    expected. A log that is missing, unreadable or not a log is a warning: the daemon starts, and
    its adapter is down until the log can be read.

    Example:
      outrider check-config --example > outrider.toml
      outrider check-config outrider.toml

    The names of settings end with their unit: _s seconds, _w watts.
    """
    if example:
        from outrider.service.demo.example_config import example_toml

        echo(example_toml(), nl=False)
        return
    if file is None:
        raise click.UsageError("expected a FILE, or --example")
    from outrider.cli.configuration import load
    from outrider.cli.doctor.secret_files import refuse_bad_files
    from outrider.cli.doctor.sources import wrong_with_sources

    try:
        loaded = load(file)
        if loaded.broken:  # the daemon would start without them, but this check must report them
            raise PluginError("; ".join(loaded.broken.values()))
        warnings = [*refuse_bad_files(loaded), *wrong_with_sources(loaded)]
    except OutriderError as error:
        if as_json:
            print_json({"ok": False, "file": shown(file), "error": str(error)})
        raise
    except RecursionError as error:
        raise ConfigurationError(f"{shown(file)}: invalid TOML: nested too deeply") from error
    facts = meaning(loaded)
    if as_json:
        print_json({"ok": True, "file": shown(file)} | facts | {"warnings": warnings})
    else:
        echo("\n".join(_lines(shown(file), facts)))
        for warning in warnings:
            echo(f"warning    {warning}")


def meaning(loaded: "LoadedConfig") -> dict[str, Any]:
    """Return the effective configuration: every value, and every plugin with its settings."""
    import msgspec

    from outrider.cli.configuration import journal_path
    from outrider.service.config.declarations import adapter_of
    from outrider.service.core.plugins import make_runners

    config = loaded.config
    values = msgspec.to_builtins(config)
    adapters = {}
    for label, table in config.adapters.items():
        kind, options = adapter_of(label, table)
        adapters[label] = {"type": kind, "settings": options}
    runners = make_runners(loaded)
    return {
        "mode": config.mode,
        "journal": shown(journal_path(loaded)),
        "adapters": adapters,
        "discipline": loaded.discipline()._asdict(),
        "policies": {
            runner.name: {
                "description": runner.policy.description,
                "settings": msgspec.to_builtins(runner.policy.settings),
                "reconsider_s": runner.reconsider_s,
            }
            for runner in runners
        },
        "publishes": None
        if config.mqtt is None
        else {"broker": config.mqtt.address, "topics": f"{config.mqtt.base}/#"},
        "config": {k: v for k, v in values.items() if k not in ("adapters", "policies")},
    }


def _lines(file: str, facts: dict[str, Any]) -> list[str]:
    config = facts["config"]
    meant = {
        "observe": "only watches and measures",
        "shadow": "records what the policies would do, and changes nothing",
        "canary": "applies the policy's decisions to the jobs that [acting] names",
        "active": "applies the policy's decisions",
    }[facts["mode"]]
    lines = [f"{file}: valid", f"mode       {facts['mode']}: {meant}"]
    for label, adapter in facts["adapters"].items():
        given = ", ".join(f"{k} = {v}" for k, v in adapter["settings"].items())
        lines.append(f"adapter    {label} ({adapter['type']}) {given}")
    discipline = facts["discipline"]
    lines.append(f"discipline {discipline['name']}: {discipline['why']}")
    if discipline["note"]:
        lines.append(f"           {discipline['note']}")
    for name, policy in facts["policies"].items():
        lines.append(f"policy     {name}: {policy['description']}")
        lines.append(f"           reconsiders deferred jobs after {policy['reconsider_s']:g} s")
    for name, cluster in config["clusters"].items():
        watts = "watts unknown" if cluster["active_w"] is None else f"{cluster['active_w']:g} W"
        lines.append(f"cluster    {name}: {', '.join(cluster['match']) or 'no machines'}; {watts}")
    if (mqtt := facts["publishes"]) is not None:
        lines.append(f"publishes  {mqtt['topics']} at {mqtt['broker']}")
    tls = "TLS and a token" if config["tls_cert"] else "no TLS"
    lines += [
        f"listens    {config['listen']} ({tls})",
        f"journal    {facts['journal']}, kept for {config['retention_days']:g} days",
        f"clock      {config['timezone']}",
    ]
    return lines

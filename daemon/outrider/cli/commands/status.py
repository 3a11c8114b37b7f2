"""``outrider status``: status of the running daemon and its site."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import asking_options, json_option
from outrider.cli.printing import print_json
from outrider.cli.terminal import check_watch, print_lines, watch_option
from outrider.model.quantities import (
    clock,
    count,
    degenerate,
    duration,
    energy,
    figure,
    percent,
)


@click.command("status", short_help="Show the status of the daemon and its site.")
@asking_options
@json_option
@watch_option
def command(
    url: str | None,
    config: Path | None,
    token_file: Path | None,
    ca: Path | None,
    as_json: bool,
    watch_s: float | None,
) -> None:
    """Show the status of the daemon and its site.

    Use it to see queue, waits, energy and fairness, and what the policies would have done. It
    queries the daemon, never the batch system. Exit code 3: no daemon answers, or it denies access;
    the message shows which, and what to do.

    Example:
      outrider status --config /etc/outrider/outrider.toml
      outrider status --watch 5

    --json prints GET /api/v1/status unchanged: times are Unix seconds, durations seconds, energies
    watt-hours; null means unknown.
    """
    from outrider.cli.configuration import daemon_address, read

    check_watch(watch_s, as_json)
    address = daemon_address(url, read(config), token_file, ca)
    if as_json:
        print_json(address.ask("/api/v1/status"))
    else:
        print_lines(lambda: _lines(address.ask("/api/v1/status")), watch_s)


def _lines(status: dict[str, Any]) -> list[str]:
    from outrider.cli.status_text import trial_lines, twin_lines
    from outrider.service.views.sentences import is_unknown

    jobs, machines = status["jobs"], status["machines"]
    power = status["energy_wh"]
    if is_unknown(status):
        jobs, machines, power = map(dict.fromkeys, (jobs, machines, power))
    now = ("queued", "running", "suspended", "held")
    wait, fair = status["wait_s"]["all"], status["fairness"]
    watts = _where_watts_come_from(status)
    evicted = sum(status["evictions"].values())
    zone = status["timezone"]
    gaps = status.get("no_data", [])  # an older daemon has none
    simulated = " on the simulated site's own clock" if status["own_clock"] else ""
    lines = [
        f"mode       {status['mode']} since {clock(status['since_s'], zone)}",
        f"now        {clock(status['now_s'], zone)}{simulated}",
        *(f"NO DATA    {gap['text'].removeprefix('No data ')}" for gap in gaps),
        f"{'jobs then' if gaps else 'jobs now':10} {_counts(jobs, now)}",
        f"jobs seen  {_counts(jobs, ('submitted', 'completed', 'removed'))}",
        f"wait       mean {duration(wait['mean'])} over {count(wait['n'])} first starts",
        f"machines   {_counts(machines, tuple(machines))}",
        f"energy     {energy(power['goodput'])} useful, {energy(power['badput'])} wasted, {watts}",
        f"evictions  {count(evicted)} of {count(status['starts'])} starts",
        f"fairness   {figure(fair['utility'], digits=3)} (1: every VO has its target share)",
    ]
    # an older daemon has no expected starts
    if starts := (status.get("expected_starts") or {}).get("summary"):
        lines.insert(5 + len(gaps), f"starts     {starts}")
    if mode := _limited(status):
        lines.insert(1, f"           {mode}")
    if note := degenerate(fair["target"]):
        lines.append(f"           {note}")
    lines += [f"policy     {_policy(policy, status['mode'])}" for policy in status["policies"]]
    # an older daemon has no levers
    lines += [f"lever      {_lever(lever)}" for lever in status.get("levers", [])]
    lines += trial_lines(status.get("trial"), zone)  # nor a trial
    lines += [f"adapter    {_adapter(adapter, zone)}" for adapter in status["adapters"]]
    ledger = status["ledger"]
    state = "recording" if ledger["recording"] else f"NOT RECORDING: {ledger['failure']}"
    lines.append(f"journal    {state}, {count(ledger['last_seq'])} rows so far")
    lines.append(f"discipline {status['discipline']['name']}: {status['discipline']['why']}")
    lines.append(f"saving     {status['saving']['text']}")
    lines += twin_lines(status.get("twin"))  # an older daemon has none
    return lines + [f"note       {note}" for note in status["notes"]]


def _limited(status: dict[str, Any]) -> str:
    """Return what lowers the mode below the configuration's; empty: nothing does."""
    configured, limit = status.get("configured_mode"), status.get("mode_limit")
    if configured is None or (limit is None and configured == status["mode"]):
        return ""  # an older daemon has neither
    if limit is None:
        return f"configured: {configured}"
    from outrider.cli.daemon import decoded
    from outrider.cli.recorded_commands import limit_in_words
    from outrider.service.shapes.values import ModeLimit

    in_words = limit_in_words(decoded(limit, ModeLimit), status["timezone"])
    return f"configured: {configured}; {in_words}"


def _where_watts_come_from(status: dict[str, Any]) -> str:
    """Describe the source of an energy figure: declared watts or meters."""
    source: str = status["power_source"]
    if source == "unknown":
        return "watts are not known"
    if source == "table":
        return "from declared watts"
    return f"{percent(status['energy_measured_ratio'])} of all energy measured by meters"


def _counts(counts: dict[str, int], names: tuple[str, ...]) -> str:
    return ", ".join(f"{count(counts[name])} {name}" for name in names)


def _policy(policy: dict[str, Any], mode: str) -> str:
    asked = policy["agreed"] + policy["disagreed"]
    if policy["role"] == "acting":
        return f"{policy['name']} acts: {count(policy['decisions'])} decisions"
    if not asked:
        return f"{policy['name']} ({mode}): not compared with a start yet"
    return (
        f"{policy['name']} ({mode}): would have chosen the same cluster in "
        f"{percent(policy['agreement_ratio'])} of {count(asked)} starts"
    )


def _lever(lever: dict[str, Any]) -> str:
    done = {outcome: n for outcome, n in lever["changes"].items() if n}
    changes = f"; {_counts(done, tuple(done))}" if done else ""
    named = f"{lever['adapter']}: {lever['name']}" if "adapter" in lever else lever["name"]
    return f"{named}: active leases {_counts(lever['standing'], tuple(lever['actions']))}{changes}"


def _adapter(adapter: dict[str, Any], timezone: str) -> str:
    events = sum(adapter["events"].values())
    rejected = sum(adapter["rejected"].values())
    line = (
        f"{adapter['label']} ({adapter['type']}) is {'up' if adapter['up'] else 'DOWN'}, newest "
        f"data {duration(adapter['input_age_s'])} old, {count(events)} events"
    )
    line += f", {count(rejected)} records rejected" if rejected else ""
    for log, since_s in adapter["silent"].items():
        line += f"; {log} is silent since {clock(since_s, timezone)}, though jobs run"
    return line + (f"; {adapter['note']}" if adapter["note"] else "")

"""``outrider explain``: why a job is where it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.options import asking_options, file_path, json_option
from outrider.cli.printing import clock, print_json
from outrider.cli.status_text import expected_start_lines
from outrider.model.errors import LedgerError, PeerError
from outrider.model.quantities import duration

if TYPE_CHECKING:
    from outrider.cli.daemon import DaemonAddress

_ROWS = 50
_SHOWN_ROWS = 5


@click.command("explain", short_help="Say why a job waits, or where it was sent and why.")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@asking_options
@click.option(
    "--ledger", type=file_path(exists=True, dir_okay=False), metavar="FILE",
    help="Read this ledger, do not ask the daemon.",
)  # fmt: skip
@json_option
def command(
    jobs: tuple[str, ...],
    url: str | None,
    config: Path | None,
    token_file: Path | None,
    ca: Path | None,
    ledger: Path | None,
    as_json: bool,
) -> int:
    """Say why a job waits, or where it was sent and why.

    Use it when a user asks. It asks the daemon, which asks the batch system why the job waits;
    where no daemon answers it reads the ledger in the state directory of --config (or the default
    one), and says so. Where --url names a daemon, only that one is asked: the ledger here may be
    another site's. Every number of a policy and of a run is in a row of the ledger; those of the
    batch system are its own of this moment, and expected starts are those in the file that they
    name, starts.json. Exit code 1: nothing is known of a job; 3: no daemon answers and no ledger
    is at hand.

    Example:
      outrider explain 1234.0 --config /etc/outrider/outrider.toml

    JOB is a name as the page lists it (SCHEDD#CLUSTER.PROC, CLUSTER:ID, ID.SERVER), or its short
    form where only one job here has it: 1234.0, 1234. Where several have it, they are listed.
    Times in --json are Unix seconds, spans
    seconds.
    """
    if ledger is not None:
        found = [_from_ledger(job, ledger) for job in jobs]
    else:
        from outrider.cli.configuration import daemon_address, journal_path, read

        own = read(config)
        address = daemon_address(url, own, token_file, ca)
        journal = journal_path(own) if url is None else None
        if own is None and journal is not None and not journal.exists():
            journal = None
        found = [_ask(job, address, journal) for job in jobs]
        for why in dict.fromkeys(e["unanswered"] for e in found if "unanswered" in e):
            click.echo(f"outrider: {why}; this is from the ledger", err=True)
    if as_json:
        print_json(found[0] if len(found) == 1 else {"jobs": found})
    else:
        for explanation in found:
            click.echo("\n".join(_lines(explanation)))
    return int(any("error" in explanation for explanation in found))


def _ask(job: str, address: "DaemonAddress", journal: Path | None) -> dict[str, Any]:
    """What is known of one job: from the daemon, else from its journal where that is known."""
    from outrider.cli.daemon import UnknownJobError, explain_path

    try:
        return address.ask(explain_path(job))
    except UnknownJobError as error:
        return _unexplained(job, "daemon", str(error), error.candidates)
    except PeerError as error:
        if journal is None:
            raise
        try:
            return _from_ledger(job, journal) | {"unanswered": str(error)}
        except LedgerError as second:
            raise PeerError(f"{error}; and its ledger cannot be read: {second}") from second


def _unexplained(job: str, source: str, error: str, candidates: list[str]) -> dict[str, Any]:
    """What is told of a job that is not known, or that may be one of several."""
    told: dict[str, Any] = {"job": job, "source": source, "error": error}
    return told | {"candidates": candidates} if candidates else told


def _from_ledger(job: str, path: Path) -> dict[str, Any]:
    from outrider.journal import TIMEZONE_KEY, Journal
    from outrider.service.views.job_runs import MOST_RUNS, end_row, how_it_left, run_row

    with Journal(path, read_only=True) as journal:
        newest_first = journal.latest_decisions(_ROWS, job)
        runs, end = journal.runs_and_end_of(job, MOST_RUNS)
        zone = journal.meta(TIMEZONE_KEY, "UTC")
        meant = [] if newest_first or runs or end else journal.jobs_meant(job)
        if len(meant) == 1:
            [job] = meant
            newest_first = journal.latest_decisions(_ROWS, job)
            runs, end = journal.runs_and_end_of(job, MOST_RUNS)
    rows = [decision.as_row(seq) for seq, decision in reversed(newest_first)]
    ended = [run_row(run) for run in runs]
    if not (rows or ended or end):
        error = f"{path}: no decision about {job}, no run and no end of it"
        if meant:
            error = f"{job!r} may be any of {len(meant)} jobs; say which"
        return _unexplained(job, "ledger", error, meant)
    latest = {row["policy"]: row for row in rows}
    left = how_it_left(ended, end, zone)
    known = [left] if left else []
    known += [_told(row) for row in latest.values()]
    return {
        "job": job,
        "mode": rows[-1]["mode"] if rows else None,
        "now_s": None,
        "timezone": zone,
        "source": "ledger",
        "state": None,
        "sentence": f"{job}: the daemon was not asked; {'; '.join(known)}.",
        "held_because": None,
        "batch_system": None,
        "batch_system_errors": [],
        "expected_start": None,
        "remedies": [],
        "lease": None,
        "alike": None,
        "waiting_s": None,
        "since_s": None,
        "runs": ended,
        "left": end_row(end),
        "policies": [_still_pending(row) for row in latest.values()],
        "decisions": rows,
    }


def _still_pending(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": row["policy"],
        "action": row["action"],
        "reason": row["reason"],
        "machine": row["machine"],
        "until_s": None,
        "scores": row["scores"] or {},
        "propensity": row["propensity"],
        "explanation": _told(row),
        "decided_s": row["time_s"],
        "seq": row["seq"],
    }


def _told(row: dict[str, Any]) -> str:
    """One row in words: what a policy did, or would have done."""
    acted = row["mode"] in ("canary", "active")
    deed = {"start": ("started", "start"), "defer": ("kept", "keep")}.get(
        row["action"], (f"chose to {row['action']}", row["action"])
    )
    verb = deed[0] if acted else f"would {deed[1]}"
    place = f" on {row['machine']}" if row["machine"] else ""
    queued = " queued" if row["action"] == "defer" else ""
    return f"{row['policy']} {verb} it{queued}{place} ({row['reason']}; row {row['seq']})"


def _lines(found: dict[str, Any]) -> list[str]:
    if "error" in found:
        head = f"{found['job']}: {found['error']} (source: {found['source']})"
        return [head, *(f"  {name}" for name in found.get("candidates", []))]
    zone = found["timezone"]
    mode = found["mode"] or "mode not known"
    lines = [f"{mode}: {found['sentence']} (source: {found['source']})"]
    said = found.get("batch_system")  # an older daemon asks none
    if said is not None:
        lines += _said(said)
    elif found.get("held_because"):
        lines.append(f"  held because: {found['held_because']}")
    lines += [f"  what would change it: {remedy}" for remedy in found.get("remedies", [])]
    lines += [f"  no answer: {why}" for why in found.get("batch_system_errors", [])]
    lines += expected_start_lines(found)
    if found["waiting_s"] is not None:
        lines.append(f"  waiting for {duration(found['waiting_s'])}{_place(found.get('alike'))}")
    lines += [_ran(run, zone) for run in found.get("runs", [])]
    for policy in found["policies"]:
        if policy["action"] is None:
            lines.append(f"  {policy['name']}: {policy['explanation']}")
            continue
        line = f"  {policy['name']}: {policy['action']} ({policy['reason']})"
        if policy["decided_s"] is not None:
            line += f", decided {clock(policy['decided_s'], zone)}"
        if policy["until_s"] is not None:
            line += f", next look {clock(policy['until_s'], zone)}"
        lines.append(line)
        if found["source"] == "daemon":
            lines.append(f"    {policy['explanation']}")
        if policy["scores"]:
            ranked = sorted(policy["scores"].items(), key=lambda item: -(item[1] or 0.0))
            lines.append("    scores: " + ", ".join(f"{n} {_score(v)}" for n, v in ranked))
    shown = found["decisions"][-_SHOWN_ROWS:]
    return lines + [f"  {clock(row['time_s'], zone)} {_told(row)}" for row in shown]


def _place(alike: dict[str, int] | None) -> str:
    """Its place among jobs like it; nothing where it is the only one.

    >>> _place({"total": 40, "ahead": 11})
    ', number 12 of 40 jobs of this user that ask for the same'
    """
    if alike is None or alike["total"] < 2:
        return ""
    place, total = alike["ahead"] + 1, alike["total"]
    return f", number {place:,} of {total:,} jobs of this user that ask for the same"


def _said(said: dict[str, Any]) -> list[str]:
    """What the batch system itself says of a job that waits."""
    code = f" ({said['code']})" if said["code"] else ""
    lines = [f"  {said['adapter']} says{code}: {said['sentence']}"]
    if said["machines"] is not None:
        lines.append(f"    machines that may run it: {said['machines']:,}")
    for clause in said["clauses"]:
        left = f"{clause['machines']:,} meet it, {clause['without_it']:,} would do without it"
        most = " (removes most)" if clause["text"] == said.get("removes_most") else ""
        lines.append(f"      {clause['text']}: {left}{most}")
    if said["ahead"] is not None:
        lines.append(f"    jobs before it: {said['ahead']:,}")
    return lines + [f"    what would change it: {remedy}" for remedy in said["remedies"]]


def _ran(run: dict[str, Any], zone: str) -> str:
    """A run that has ended, in a line."""
    lost = run["lost_because"]
    how = "completed" if lost is None else f"lost ({lost.replace('_', ' ')})"
    began = clock(run["start_s"], zone)
    return f"  ran on {run['machine']} from {began} for {duration(run['run_s'])}: {how}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

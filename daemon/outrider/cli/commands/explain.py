"""Command ``outrider explain``: why a job is where it is."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.options import asking_options, file_path, json_option
from outrider.cli.printing import echo, print_json
from outrider.model.errors import LedgerError, PeerError
from outrider.model.quantities import clock, duration
from outrider.service.views.sentences import decision_text, gap_lines, lease_in_words

if TYPE_CHECKING:
    from outrider.cli.daemon import DaemonAddress

_ROWS = 50
_SHOWN_ROWS = 5


@click.command("explain", short_help="Explain why a job waits, and what would change it.")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@asking_options
@click.option(
    "--ledger", type=file_path(exists=True, dir_okay=False), metavar="FILE",
    help="Read this journal and do not ask the daemon.",
)  # fmt: skip
@click.option("--verbose", is_flag=True, help="Show the numbers and journal rows behind it, too.")
@json_option
def command(
    jobs: tuple[str, ...],
    url: str | None,
    config: Path | None,
    token_file: Path | None,
    ca: Path | None,
    ledger: Path | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Explain why a job waits, and what would change it.

    First comes the batch system's own reason, then what would change it, the expected start, and
    what each policy would do. --verbose adds the numbers behind each sentence.

    The command asks the daemon, which asks the batch system. If no daemon answers, it reads the
    journal in the state directory of --config (or the default one), and says so. If --url names a
    daemon, only that one is asked. Exit code 1: the job is not known; 3: no daemon answers and
    there is no journal.

    Example:
      outrider explain 1234.0 --config /etc/outrider/outrider.toml

    JOB is a name as the page lists it (SCHEDD#CLUSTER.PROC, CLUSTER:ID, ID.SERVER), or its short
    form if only one job has it: 1234.0, 1234. If several jobs have it, they are listed. Times in
    --json are Unix seconds.
    """
    if ledger is not None:
        found = [_from_ledger(job, ledger) for job in jobs]
    else:
        from outrider.cli.configuration import daemon_address, journal_path, read

        own = read(config)
        address = daemon_address(url, own, token_file, ca)
        journal = journal_path(own) if url is None else None
        if own is None and journal is not None and not os.path.exists(journal):  # noqa: PTH110
            journal = None  # or it may not be looked for: `Path.exists` would raise then
        found = [_ask(job, address, journal) for job in jobs]
        for why in dict.fromkeys(e["unanswered"] for e in found if "unanswered" in e):
            echo(f"outrider: {why}; this is from its journal", err=True)
    if as_json:
        print_json(found[0] if len(found) == 1 else {"jobs": found})
    else:
        for explanation in found:
            echo("\n".join(_lines(explanation, verbose)))
    return int(any("error" in explanation for explanation in found))


def _ask(job: str, address: "DaemonAddress", journal: Path | None) -> dict[str, Any]:
    """Return what is known of one job, from the daemon or else from its journal."""
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
            raise PeerError(f"{error}; and its journal cannot be read: {second}") from second
        except PermissionError as second:
            raise PeerError(
                f"{error}; and its journal is private to the daemon's user: {second}"
            ) from second


def _unexplained(job: str, source: str, error: str, candidates: list[str]) -> dict[str, Any]:
    """Return the answer for a job that is not known, or that may be one of several."""
    answer: dict[str, Any] = {"job": job, "source": source, "error": error}
    return answer | {"candidates": candidates} if candidates else answer


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
    ended = [run_row(run, zone) for run in runs]
    if not (rows or ended or end):
        error = f"{path}: no decision about {job}, no run and no end of it"
        if meant:
            error = f"{job!r} may be any of {len(meant)} jobs; say which"
        return _unexplained(job, "ledger", error, meant)
    latest = {row["policy"]: row for row in rows}
    left = how_it_left(ended, end, zone)
    known = [left] if left else []
    known += [f"{decision_text(row)} (row {row['seq']})" for row in latest.values()]
    cause = f"{job}, by the journal: {'; '.join(known)}."
    return {
        "job": job,
        "mode": rows[-1]["mode"] if rows else None,
        "now_s": None,
        "timezone": zone,
        "source": "ledger",
        "state": None,
        "sentence": cause,
        "cause": cause,
        "held_because": None,
        "batch_system": None,
        "batch_system_errors": [],
        "expected_start": None,
        "start_lines": [],
        "remedies": [],
        "lease": None,
        "alike": None,
        "waiting_s": None,
        "since_s": None,
        "runs": ended,
        "left": end_row(end),
        "policies": [_still_pending(row) for row in latest.values()],
        "policy_lines": [],
        "decisions": rows,
    }


def _still_pending(row: dict[str, Any]) -> dict[str, Any]:
    text = decision_text(row)
    return {
        "name": row["policy"],
        "action": row["action"],
        "reason": row["reason"],
        "machine": row["machine"],
        "until_s": None,
        "scores": row["scores"] or {},
        "propensity": row["propensity"],
        "explanation": text,
        "text": text,
        "decided_s": row["time_s"],
        "seq": row["seq"],
    }


def _lines(found: dict[str, Any], verbose: bool) -> list[str]:
    if "error" in found:
        head = f"{found['job']}: {found['error']} (source: {found['source']})"
        return [head, *(f"  {name}" for name in found.get("candidates", []))]
    batch_system = found.get("batch_system") or {}  # an older daemon asks none
    lines = [found.get("cause") or found["sentence"]]
    lines += [f"  {line}" for line in gap_lines(found)]
    known = (lines[0], batch_system.get("code") or "")
    if (why := found.get("held_because")) and not any(why in text for text in known):
        lines.append(f"  held because: {why}")
    remedies = [*batch_system.get("remedies", []), *found.get("remedies", [])]
    lines += [f"  what would change it: {remedy}" for remedy in remedies]
    lines += [f"  no answer: {why}" for why in found.get("batch_system_errors", [])]
    if found.get("withheld"):
        lines.append(f"  withheld: {found['withheld']}")
    lines += [f"  {line}" for line in found.get("start_lines", [])]
    if found["source"] == "daemon":  # from the journal, the first line has them
        # an older daemon, not yet restarted after an upgrade, sends no such lines, or no texts
        of_policies = found.get("policy_lines") or [
            one.get("text") or one["explanation"] for one in found["policies"]
        ]
        lines += [f"  {line}" for line in of_policies]
    if found.get("lease"):
        lines.append(f"  {lease_in_words(found['lease'])}")
    if found["waiting_s"] is not None:
        lines.append(f"  waiting for {duration(found['waiting_s'])}{_place(found.get('alike'))}")
    lines += [f"  {run['text']}" for run in found.get("runs", []) if "text" in run]
    if verbose:
        lines += _numbers(found, batch_system)
    more = "" if verbose else " --verbose shows the numbers."
    return [*lines, f"  {_source(found)}.{more}"]


def _source(found: dict[str, Any]) -> str:
    """Return where an answer comes from, as a sentence without its full stop."""
    if found["source"] == "daemon":
        return f"From the daemon, which runs in {found['mode']} mode"
    mode = f", whose last entry was written in {found['mode']} mode" if found["mode"] else ""
    return f"From the journal{mode}"


def _numbers(found: dict[str, Any], batch_system: dict[str, Any]) -> list[str]:
    """Return the numbers behind the sentences: of the batch system, the policies, the journal."""
    zone = found["timezone"]
    lines = _batch_system_numbers(batch_system) if batch_system else []
    for policy in found["policies"]:
        facts = [f"{policy['action']} ({policy['reason']})"] if policy["action"] else []
        if policy["decided_s"] is not None:
            facts.append(f"decided {clock(policy['decided_s'], zone)}")
        if policy["until_s"] is not None:
            facts.append(f"next look {clock(policy['until_s'], zone)}")
        if policy["propensity"] is not None:
            facts.append(f"chosen with probability {policy['propensity']:.3f}")
        lines.append(f"  {policy['name']}: {', '.join(facts) or 'no decision yet'}")
        if found["source"] == "daemon":
            lines.append(f"    {policy['explanation']}")
        if policy["scores"]:
            ranked = sorted(policy["scores"].items(), key=lambda item: -(item[1] or 0.0))
            lines.append("    scores: " + ", ".join(f"{n} {_score(v)}" for n, v in ranked))
    shown = found["decisions"][-_SHOWN_ROWS:]
    rows = [f"{clock(one['time_s'], zone)} {decision_text(one)}; row {one['seq']}" for one in shown]
    return lines + [f"  {row}" for row in rows]


def _place(alike: dict[str, int] | None) -> str:
    """Return its place among similar jobs; empty where it is the only one.

    >>> _place({"total": 40, "ahead": 11})
    ', number 12 of 40 jobs of this user with the same request'
    """
    if alike is None or alike["total"] < 2:
        return ""
    place, total = alike["ahead"] + 1, alike["total"]
    return f", number {place:,} of {total:,} jobs of this user with the same request"


def _batch_system_numbers(answer: dict[str, Any]) -> list[str]:
    """Return the numbers that the batch system gave for a job that waits."""
    code = f" ({answer['code']})" if answer["code"] else ""
    lines = [f"  {answer['adapter']}{code}: {answer['sentence']}"]
    if answer["machines"] is not None:
        lines.append(f"    machines that may run it: {answer['machines']:,}")
    for clause in answer["clauses"]:
        left = f"{clause['machines']:,} meet it, {clause['without_it']:,} would do without it"
        most = " (removes most)" if clause["text"] == answer.get("removes_most") else ""
        lines.append(f"      {clause['text']}: {left}{most}")
    if answer["ahead"] is not None:
        lines.append(f"    jobs before it: {answer['ahead']:,}")
    return lines


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

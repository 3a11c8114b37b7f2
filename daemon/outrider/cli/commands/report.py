"""``outrider report``: a site report from a journal, with estimates for other policies."""

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.listing import Wanted, print_list, table_options, wanted
from outrider.cli.options import file_path, json_option, policy_names, share_table, shares_option
from outrider.cli.printing import echo, print_json, shown
from outrider.cli.tables import TABLES, columns_of, every_column, rows_of
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import clock

if TYPE_CHECKING:
    from outrider.twin.answer_file import TwinAnswer


def _columns(ctx: click.Context) -> Iterable[str]:
    """Return the columns of the table given so far, else of all tables."""
    table = ctx.params.get("table")
    return every_column() if table is None else columns_of(table)


@click.command("report", short_help="Report on past weeks, with estimates for other policies.")
@click.argument("file", metavar="[FILE]", required=False, type=file_path(dir_okay=False))
@click.option(
    "--config", type=file_path(dir_okay=False), metavar="FILE",
    help="The daemon's configuration file, which gives the journal and the shares.",
)  # fmt: skip
@click.option(
    "--weeks", metavar="N", type=click.IntRange(min=1, max=520),
    help="The last N whole weeks, Monday to Monday in the site's time zone. [default: 1]",
)  # fmt: skip
@click.option("--begin", metavar="ISO", help="Begin of another window, such as 2026-03-02T06:00.")
@click.option("--end", metavar="ISO", help="End of that window, exclusive.")
@click.option(
    "--twin", "answer_file", metavar="FILE", type=file_path(dir_okay=False),
    help="The twin's answer, printed by `outrider twin FILE --policy NAME --json`. [default: with "
    "--config the last answer of outrider-twin.service]",
)  # fmt: skip
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME", shell_complete=policy_names,
    help="Run the twin for this policy now, which takes a while. Repeat for more.",
)  # fmt: skip
@click.option(
    "--price-per-kwh", metavar="X", type=click.FloatRange(min=0),
    help="Price of a kWh, in --currency. [default: no costs are shown]",
)  # fmt: skip
@click.option(
    "--currency", metavar="WORD", default="EUR", show_default=True, help="Currency of the price."
)
@click.option(
    "--co2-g-per-kwh", metavar="Y", type=click.FloatRange(min=0),
    help="Grams of CO2 per kWh. [default: no CO2 is shown]",
)  # fmt: skip
@shares_option
@click.option(
    "--out", type=file_path(file_okay=False), metavar="DIR",
    help="Folder for the report as HTML, JSON and CSV.",
)  # fmt: skip
@click.option(
    "--table", type=click.Choice(list(TABLES)),
    help="Print one table instead of the summary: one line per VO, user, machine, ...",
)  # fmt: skip
@table_options(_columns)
@json_option
def command(
    file: Path | None,
    config: Path | None,
    weeks: int | None,
    begin: str | None,
    end: str | None,
    answer_file: Path | None,
    policies: tuple[str, ...],
    price_per_kwh: float | None,
    currency: str,
    co2_g_per_kwh: float | None,
    shares: str,
    out: Path | None,
    table: str | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Report on past weeks, with estimates for other policies.

    FILE is a daemon's journal.sqlite; --config finds it. From it come jobs, waits, energy and
    wasted work by VO, class and machine group, and the users, machines and jobs with the most
    waste. The estimates for other policies are the twin's answer, for its own window: the last one
    in the state directory of --config, a saved one (--twin), or a new one (--policy). With a tariff
    energy is also shown as costs and CO2.

    The files contain users' names as in the journal, so only their owner can read them (mode 0600).

    --table is for spreadsheets and scripts, as CSV (--csv) or in columns. Names ending in _h are
    CPU-hours, in _kwh, _money and _co2_kg energy, its costs and its CO2, in _s seconds. Unknown
    values are empty.

    Example:
      outrider report --config /etc/outrider/outrider.toml --price-per-kwh 0.24 --out reports
      outrider report journal.sqlite --begin 2026-03-02 --end 2026-03-16 --policy survival
      outrider report --config /etc/outrider/outrider.toml --table user --csv
    """
    from outrider.cli.provenance import provenance
    from outrider.cli.tables import write_report
    from outrider.report.document import document, read_answer
    from outrider.report.figures import Tariff
    from outrider.report.html import summary

    asked = _wanted(table, as_json, words)
    if answer_file is not None and policies:
        raise ConfigurationError("--twin and --policy: use one of them")
    journal, targets = _journal(file, config, shares)
    answer: TwinAnswer | None = None
    if answer_file is not None:
        answer = read_answer(answer_file)
    elif config is not None and not policies:
        answer = _daemons_own(journal.parent)
    window, before, zone = _windows(journal, weeks, begin, end)
    if policies:
        answer = _asked(journal, policies, config)
    report = document(
        journal, window, before, zone, tariff=Tariff(price_per_kwh, currency, co2_g_per_kwh),
        answer=answer, targets=targets,
    )  # fmt: skip
    report |= provenance([journal, *([] if answer_file is None else [answer_file])])
    written = [] if out is None else write_report(out, report)
    if table is not None:
        about = {"window": report["window"], "tariff": report["tariff"]}
        known, rows = columns_of(table), rows_of(report, table)
        print_list(table, known, TABLES[table].shown, asked, lambda: (rows, about))
    elif as_json:
        print_json(report)
    else:
        for line in (*summary(report), *map(shown, written)):
            echo(line)


def _wanted(table: str | None, as_json: bool, words: dict[str, Any]) -> Wanted:
    """Return the table options, checked. Raises `click.UsageError`."""
    if table is None and any(words.values()):
        tables = ", ".join(TABLES)
        raise click.UsageError(
            f"-o, --sort, --csv and --no-header need one table; use --table NAME ({tables})"
        )
    return wanted({} if table is None else columns_of(table), words | {"as_json": as_json})


def _journal(
    file: Path | None, config: Path | None, shares: str
) -> tuple[Path, Mapping[str, float]]:
    """Return the journal and the VOs' target shares.

    Raises `ConfigurationError`, `PluginError`.
    """
    from outrider.cli.configuration import journal_path, load

    given = share_table(shares)
    if file is not None and config is None:
        return file, given
    if config is not None and file is None:
        loaded = load(config)
        return journal_path(loaded), given or loaded.config.shares
    raise ConfigurationError("expected a journal or --config, one of them")


def _daemons_own(folder: Path) -> "TwinAnswer | None":
    """Return the last answer that the twin process wrote into the state directory."""
    from outrider.report.document import answer_of
    from outrider.service.twin import twin_file

    try:
        plain = twin_file.read_plain(folder) or {}
    except twin_file.TwinFileError as error:
        raise ConfigurationError(str(error)) from error
    if not isinstance(plain.get("answer"), dict):
        return None
    asked_s = plain.get("asked_s")
    date = None if asked_s is None else clock(asked_s)
    return answer_of(plain["answer"] | {"date": date})


def _windows(path: Path, weeks: int | None, begin: str | None, end: str | None) -> Any:
    """Return the window, the one before it, and the site's time zone."""
    from outrider.cli.configuration import open_journal, zone_of
    from outrider.journal.journal_events import last_moment_s
    from outrider.model.localtime import time_zone
    from outrider.report.windows import asked_for, whole_weeks

    if (begin is None) != (end is None) or (begin is not None and weeks is not None):
        raise ConfigurationError("use either --weeks, or both --begin and --end")
    with open_journal(path) as journal:
        zone = time_zone(zone_of(journal))
        if begin is not None and end is not None:
            return *asked_for(begin, end, zone), zone
        last_s = last_moment_s(journal)
    return *whole_weeks(0.0 if last_s is None else last_s, weeks or 1, zone), zone


def _asked(journal: Path, policies: tuple[str, ...], config: Path | None) -> "TwinAnswer":
    """Return the twin's answer for the whole journal; a configuration limits deferrals."""
    from outrider.cli.configuration import load
    from outrider.cli.policies_on_traces import refuse_repeats
    from outrider.cli.terminal import progress_bar
    from outrider.plugins.finding import make_policy
    from outrider.report.document import answer_of
    from outrider.service.config.declarations import acting_of
    from outrider.twin.asking import ask_twin

    refuse_repeats(policies, "--policy")
    bound_s = inf if config is None else acting_of(load(config).config).longest_deferral_s

    def make(name: str, seed: int) -> Any:
        return make_policy(name, {}, seed, "--policy")

    for name in policies:  # refuse what is wrong before a long run, not after it
        make(name, 0)
    with progress_bar("simulating") as progress:
        asked = ask_twin(journal, policies, make, longest_deferral_s=bound_s, progress=progress)
        return answer_of(asked.to_json())

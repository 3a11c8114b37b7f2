"""Ends of jobs that left between two looks, from ``sacct``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from outrider.api import NamedEvent, events
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.settings import SlurmSettings
from outrider_adapters.slurm.slurm_watch import Accounting
from tests.adapters.slurm.test_commands import program

T = 1_795_441_000.0
HEADER = (
    "Cluster|JobID|State|Submit|Eligible|Start|End|AllocCPUS|ReqCPUS|User|Account|Group|Timelimit|"
    "NodeList"
)
ROWS = (
    "c|5|COMPLETED|1795441000|1795441000|1795441010|1795441100|2|2|alice|physics|staff|01:00:00|n1",
    "c|6|CANCELLED by 0|1795441000|1795441000|None|1795441050|0|1|bob|physics||1:00|None assigned",
    "c|7_2|REQUEUED|1795441000|1795441000|1795441020|1795441030|1|1|bob|physics|staff|01:00:00|n2",
    "c|7_2|TIMEOUT|1795441030|1795441030|1795441040|1795441090|1|1|bob|physics|staff|01:00:00|n3",
    "c|8|RUNNING|1795441000|1795441000|1795441010|Unknown|1|1|bob|physics|staff|01:00:00|n3",
)


def accounting(
    folder: Path,
    script: str,
    storage: str = "accounting_storage/slurmdbd",
    sleep: Callable[[float], None] = lambda _: None,
) -> Accounting:
    """Return the accounting of a cluster with this script as sacct."""
    program(folder, "sacct", script)
    commands = SlurmCommands(SlurmSettings(commands=str(folder), answer_within_s=5.0))
    return Accounting(commands, storage, "c", sleep)


def printed(*rows: str) -> str:
    """Return a script that prints a dump, and stores its arguments."""
    shown = "\\n".join([HEADER, *rows, ""])
    return f'echo "$@" >> "$(dirname "$0")/asked"; printf \'{shown}\''


def of(reported: list[NamedEvent], job: str) -> list[tuple[float, str]]:
    """Return time and kind of the events of one job."""
    return [(e[0] - T, events.KIND_NAMES[e[1]]) for e in reported if e[2] == f"c:{job}"]


def test_each_job_ends_as_it_was_recorded(tmp_path: Path) -> None:
    asked = accounting(tmp_path, printed(*ROWS))
    reported = asked.ends_of(["5", "6", "7_2"], "c:{}".format, T + 900)
    assert of(reported, "5") == [(0, "submitted"), (10, "started"), (100, "completed")]
    assert of(reported, "6")[-1] == (50, "removed")
    assert of(reported, "7_2")[1:] == [
        (20, "started"), (30, "evicted"), (30, "submitted"), (40, "started"),
        (90, "removed"),
    ]  # fmt: skip
    assert not asked.note
    assert "-j 5,6,7_2" in (tmp_path / "asked").read_text()


def test_what_it_does_not_know_counts_as_removed_and_is_told(tmp_path: Path) -> None:
    asked = accounting(tmp_path, printed(*ROWS))
    reported = asked.ends_of(["8", "9"], "c:{}".format, T + 900)
    assert of(reported, "9") == [(900, "removed")]
    assert of(reported, "8")[-1] == (900, "removed"), "it is in the queue no more"
    assert asked.note == "the end of 2 jobs is unknown: they count as removed"


def test_without_a_database_nobody_is_asked(tmp_path: Path) -> None:
    asked = accounting(tmp_path, printed(*ROWS), storage="accounting_storage/none")
    assert of(asked.ends_of(["5"], "c:{}".format, T + 900), "5") == [(900, "removed")]
    assert not (tmp_path / "asked").exists()


def test_an_eviction_has_the_reason_that_was_recorded(tmp_path: Path) -> None:
    row = (
        "c|9|PREEMPTED|1795441000|1795441000|1795441010|1795441100|2|2|alice|physics|staff|1:00|n1"
    )
    asked = accounting(tmp_path, printed(row))
    known = (T, events.STARTED, "c:9", ("n1", 2))
    found: list[NamedEvent] = [known, (T + 100, events.EVICTED, "c:9", "unknown")]
    assert asked.with_reasons(found) == [known, (T + 100, events.EVICTED, "c:9", "preempted")]
    earlier: list[NamedEvent] = [(T + 99, events.EVICTED, "c:9", "unknown")]
    assert asked.with_reasons(earlier) == earlier, "another run"
    told: list[NamedEvent] = [(T + 100, events.EVICTED, "c:9", "machine")]
    assert asked.with_reasons(told) == told
    silent = accounting(tmp_path, "exit 1")
    assert silent.with_reasons(found) == found
    none = accounting(tmp_path, printed(row), storage="accounting_storage/none")
    assert none.with_reasons(found) == found


def test_a_record_that_comes_a_moment_later_is_waited_for(tmp_path: Path) -> None:
    row = (
        "c|9|PREEMPTED|1795441000|1795441000|1795441010|1795441100|2|2|alice|physics|staff|1:00|n1"
    )
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if seconds == 0.5:
            accounting(tmp_path, printed(row))

    asked = accounting(tmp_path, printed(), sleep=sleep)
    found: list[NamedEvent] = [(T + 100, events.EVICTED, "c:9", "unknown")]
    assert asked.with_reasons(found) == [(T + 100, events.EVICTED, "c:9", "preempted")]
    assert slept == [0.0, 0.5], "and no longer than that"


def test_many_jobs_are_asked_for_in_turn(tmp_path: Path) -> None:
    asked = accounting(tmp_path, printed())
    asked.ends_of([str(n) for n in range(1_200)], "c:{}".format, T + 900)
    assert len((tmp_path / "asked").read_text().splitlines()) == 3


def test_a_database_that_does_not_answer_is_the_callers_to_wait_for(tmp_path: Path) -> None:
    asked = accounting(tmp_path, "echo 'sacct: error: slurmdbd: refused' >&2; exit 1")
    with pytest.raises(CommandError, match="slurmdbd: refused"):
        asked.ends_of(["5"], "c:{}".format, T + 900)
    assert not asked.note

"""Commands that fail, hang or print too much, in place of Slurm's own."""

import asyncio
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from outrider.api import PeerError
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm import SlurmAdapter
from outrider_adapters.slurm.commands import SEPARATOR, RecentAnswers, SlurmCommands
from outrider_adapters.slurm.settings import SlurmSettings

CONFIG = "ClusterName = c\\nAccountingStorageType = accounting_storage/none\\n"


def program(folder: Path, name: str, script: str) -> None:
    """Write a command of that name."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def commands(folder: Path, within_s: float = 5.0) -> SlurmCommands:
    """Return the commands of the folder."""
    return SlurmCommands(SlurmSettings(commands=str(folder), answer_within_s=within_s))


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"squeue cannot be run: No such file or directory"):
        commands(tmp_path).run("squeue")


def test_what_a_command_complains_of_is_told_in_a_line(tmp_path: Path) -> None:
    program(tmp_path, "squeue", r"printf 'slurm_load_jobs\033[2J\nerror: refused\n' >&2; exit 1")
    with pytest.raises(CommandError) as caught:
        commands(tmp_path).run("squeue")
    assert str(caught.value) == "squeue: slurm_load_jobs[2J error: refused"


def test_a_command_that_hangs_is_ended_with_all_that_it_began(tmp_path: Path) -> None:
    program(tmp_path, "squeue", f"echo $$ > {tmp_path}/pid; sleep 60 & wait")
    began_s = time.monotonic()
    with pytest.raises(CommandError, match=r"squeue did not answer within 0.5 s"):
        commands(tmp_path, within_s=0.5).run("squeue")
    assert time.monotonic() - began_s < 10
    group = int((tmp_path / "pid").read_text())
    while _lives(group):
        assert time.monotonic() - began_s < 10, "its child lives on"
        time.sleep(0.05)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_shell_that_changes_what_is_printed_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "squeue", "env")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    shown = commands(tmp_path).run("squeue").split("\n")
    assert "SLURM_TIME_FORMAT=%s" in shown
    assert "SLURM_BITSTR_LEN=0" in shown
    assert not [one for one in shown if one.startswith(("SQUEUE_", "SLURM_CLUSTERS"))]


PRINTS = r"""
word=$(printf %s "$6" | sed 's/^JobArrayID:\([^,]*\),.*$/\1/')
printf '7%s%b%s\n' "$word" "$ACCOUNT" "$word"
printf '8%sphysics%s\n' "$word" "$word"
"""
"""Script of a squeue with two jobs; the first account is text of its user."""


@pytest.mark.parametrize(
    ("account", "shown"),
    [("chemistry", "chemistry"), (r"a\nb", "a b"), (r"\nb", " b"), (r"b\n", "b "),
     (r"x\037\n8\037forged\037\n", "x  8 forged  "), ("", "")],
)  # fmt: skip
def test_no_account_makes_up_rows_or_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: str, shown: str
) -> None:
    program(tmp_path, "squeue", PRINTS)
    monkeypatch.setenv("ACCOUNT", account)
    rows = commands(tmp_path).rows(("JobArrayID", "Account"), "-a", "-t")
    assert [row.split(SEPARATOR) for row in rows] == [["7", shown, ""], ["8", "physics", ""]]


@pytest.mark.parametrize("most_bytes", [1, 10, 43, 50, 83])
def test_an_answer_that_ends_in_a_row_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    """End the output early, with status 0: the jobs that are missing have not left."""
    program(tmp_path, "squeue", f"{{ {PRINTS} }} | head -c {most_bytes}")
    monkeypatch.setenv("ACCOUNT", "chemistry")
    with pytest.raises(CommandError, match="squeue: its output ends in the middle of a row"):
        commands(tmp_path).rows(("JobArrayID", "Account"), "-a", "-t")


def test_the_word_between_fields_is_another_each_time(tmp_path: Path) -> None:
    program(tmp_path, "squeue", f'printf "%s\\n" "$4" >> {tmp_path}/asked')
    for _ in range(2):
        assert commands(tmp_path).rows(("JobID",)) == []
    one, other = (tmp_path / "asked").read_text().split()
    assert one != other


def test_what_is_closed_runs_nothing_more(tmp_path: Path) -> None:
    program(tmp_path, "squeue", "sleep 60")
    closed = commands(tmp_path, within_s=30)
    timer = threading.Timer(0.5, closed.close)
    timer.start()
    began_s = time.monotonic()
    for _ in range(2):
        with pytest.raises(CommandError):
            closed.run("squeue")
    assert time.monotonic() - began_s < 10
    timer.join()


def test_a_cluster_of_a_federation_is_refused_by_name(tmp_path: Path) -> None:
    program(
        tmp_path, "scontrol",
        f"case \"$2\" in config) printf '{CONFIG}';; federation) echo 'Federation: north';; esac",
    )  # fmt: skip

    async def first() -> None:
        async with SlurmAdapter("s", SlurmSettings(commands=str(tmp_path))) as adapter:
            await anext(adapter.batches(None))

    with pytest.raises(PeerError, match=r"c is in a federation: north.*expected"):
        asyncio.run(first())


@pytest.mark.parametrize(
    "cursor",
    [{}, {"version": 9}, [], "x", {"version": 1, "cluster": "other"}],
    ids=["empty", "version", "list", "text", "another cluster"],
)
def test_a_cursor_of_something_else_is_refused(tmp_path: Path, cursor: object) -> None:
    program(tmp_path, "scontrol", f"[ \"$2\" = federation ] || printf '{CONFIG}'")

    async def first() -> None:
        async with SlurmAdapter("s", SlurmSettings(commands=str(tmp_path))) as adapter:
            await anext(adapter.batches(cursor))

    with pytest.raises(ValueError, match="no cursor of the Slurm cluster 'c'"):
        asyncio.run(first())


def test_a_slow_answer_is_kept_longer_and_over_a_look(tmp_path: Path) -> None:
    now_s, asked, took_s = 100.0, 0, 0.0

    def ask() -> int:
        nonlocal asked, now_s
        asked += 1
        now_s += took_s
        return asked

    recent = RecentAnswers(commands(tmp_path), lambda: now_s)
    assert recent.kept(("queue",), ask) == 1
    now_s += 1.9
    assert recent.kept(("queue",), ask) == 1
    assert recent.kept(("nodes",), ask) == 2, "another question"
    recent.forget()
    took_s = 0.5
    assert recent.kept(("queue",), ask) == 3, "a look has seen what is newer"
    now_s += 14.0
    recent.forget()
    assert recent.kept(("queue",), ask) == 3, "for thirty times as long as it took"
    now_s += 1.5
    assert recent.kept(("queue",), ask) == 4

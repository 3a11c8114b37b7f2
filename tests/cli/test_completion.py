"""`outrider completion`: what the Tab key does in a real bash at a terminal."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.plugins.finding import ESTIMATORS, POLICIES, READERS, find
from tests.cli.running import COMMAND, WITHIN_S, outrider, shell
from tests.peers.presence import require_program

PROMPT = "ready> "


class Terminal:
    """An interactive bash that has read the script, and its terminal."""

    def __init__(self, folder: Path) -> None:
        bash = require_program("bash", "bash")
        script = folder / "completion.bash"
        script.write_text(outrider("completion", "bash").out)
        start = folder / "bashrc"
        start.write_text(
            f"PS1='{PROMPT}'; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'\n"
            f"source {script}\n"
        )
        self._mine, theirs = pty.openpty()
        self._bash = subprocess.Popen(
            [bash, "--noprofile", "--rcfile", start, "-i"],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, cwd=folder,
            env={
                "PATH": f"{COMMAND.parent}:/usr/bin:/bin", "TERM": "dumb", "COLUMNS": "500",
                "HOME": str(folder),
            },
        )  # fmt: skip
        os.close(theirs)
        self.until(PROMPT)

    def until(self, expected: str) -> str:
        """Return the output up to a text; fail if it does not appear in time."""
        shown, deadline_s = "", time.monotonic() + WITHIN_S
        while expected not in shown:
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"no {expected!r} in {shown!r}"
            if select.select([self._mine], [], [], left_s)[0]:
                shown += os.read(self._mine, 4096).decode()
        return shown

    def tab(self, typed: str, expected: str) -> None:
        """Type, press Tab, wait for the whole word, and give up the line."""
        os.write(self._mine, f"{typed}\t".encode())
        self.until(expected)
        os.write(self._mine, b"\x15\r")  # kill the line, and take the empty one
        self.until(PROMPT)

    def close(self) -> None:
        """End the shell process."""
        self._bash.kill()
        self._bash.wait(WITHIN_S)
        os.close(self._mine)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal with a shell in a folder that holds a configuration."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "site-of-mine.toml").touch()
    opened = Terminal(folder)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("outrider machi", "outrider machines "),
        ("outrider jobs --no-h", "--no-header "),
        ("outrider jobs --state susp", "--state suspended "),
        ("outrider jobs -o job,user,wait", "-o job,user,waiting_s "),
        ("outrider users --sort longest", "--sort longest_wait_s "),
        ("outrider report --table black", "--table black_hole "),
        ("outrider report --table user --sort badput_sh", "--sort badput_share "),
        ("outrider replay --policy random_m", "--policy random_match "),
        ("outrider ledger verif", "ledger verify "),
        ("outrider mode sha", "mode shadow "),
        ("outrider status --config site-", "--config site-of-mine.toml"),
    ],
)
def test_bash_completes_words_and_values(terminal: Terminal, typed: str, whole: str) -> None:
    terminal.tab(typed, whole)


def offered(*words: str) -> set[str]:
    """Return the completions of the last word."""
    asked = {
        "_OUTRIDER_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    return {line.removeprefix("plain,") for line in shell(**asked).out.split()}


@pytest.mark.parametrize(
    ("words", "group"),
    [
        (("replay", "--policy"), POLICIES),
        (("ingest", "--format"), READERS),
        (("estimate", "--estimator"), ESTIMATORS),
    ],
)
def test_names_of_plugins_are_those_that_are_installed(words: tuple[str, ...], group: str) -> None:
    first = next(iter(find(group)))[0]
    assert offered("outrider", *words, first) == {
        name for name in find(group) if name.startswith(first)
    }


def test_a_column_that_was_named_is_not_offered_again() -> None:
    assert offered("outrider", "users", "-o", "user,vo,v") == set()
    assert offered("outrider", "users", "-o", "user,v") == {"user,vo"}


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(name: str) -> None:
    script = outrider("completion", name)
    assert script.code == 0
    assert f"_OUTRIDER_COMPLETE={name}_complete" in script.out

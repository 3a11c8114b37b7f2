"""Start-up cost of a command, and its output for each exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import outrider as package
from tests.cli.running import COMMAND, WITHIN_S, interruptible, outrider, shell

HEAVY = ("click", "rich", "numpy", "msgspec", "aiohttp", "structlog")


def seconds(*command: object) -> float:
    begin = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return time.perf_counter() - begin


def imports(*words: str) -> set[str]:
    """Top-level packages that a command imports, by the interpreter's own account."""
    done = shell(*words, PYTHONPROFILEIMPORTTIME="1")
    assert done.code == 0, done
    modules = [line.rpartition("|")[2].strip() for line in done.err.splitlines() if "|" in line]
    return {module.split(".")[0] for module in modules}


def test_the_version_costs_at_most_six_bare_interpreters() -> None:
    rounds = [(seconds(COMMAND, "--version"), seconds(sys.executable, "-c", "pass"))
              for _ in range(12)]  # fmt: skip
    version_s, bare_s = (min(column) for column in zip(*rounds, strict=True))
    assert version_s <= 6 * bare_s, f"{version_s * 1000:.0f} ms against {bare_s * 1000:.0f} ms"


def test_the_version_is_told_without_importing_anything_heavy() -> None:
    assert shell("--version") == (0, f"outrider {package.__version__}\n", "")
    assert not imports("--version") & set(HEAVY)


@pytest.mark.parametrize("words", [("--help",), ("replay", "--help"), ("ingest", "--help")])
def test_help_imports_nothing_but_the_command_line(words: tuple[str, ...]) -> None:
    assert not imports(*words) & {"numpy", "aiohttp", "rich", "structlog"}


def test_an_unknown_command_names_the_nearest() -> None:
    done = outrider("replya")
    assert done.code == 2
    assert 'no command "replya"; did you mean "replay"?' in done.err


def test_an_unknown_option_is_bad_use() -> None:
    done = outrider("plugins", "--jsno")
    assert done.code == 2
    assert "--jsno" in done.err


def test_a_fault_of_outriders_own_is_told_in_two_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("the wheel came off")

    log = tmp_path / "log"
    log.touch()
    monkeypatch.setattr("outrider.report.logs.read_logs", broken)
    done = outrider("ingest", log)
    assert done.code == 70
    assert "RuntimeError: the wheel came off" in done.err
    assert "OUTRIDER_TRACEBACK=1" in done.err
    assert "Traceback" not in done.err

    monkeypatch.setenv("OUTRIDER_TRACEBACK", "1")
    assert "Traceback" in outrider("ingest", log).err


def test_a_folder_that_cannot_be_made_is_no_fault_of_outriders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = ("--weeks", 0.1, "--machines", 2, "--out", tmp_path / "file" / "campus")
    done = outrider("generate", "campus", "--seed", 1, *words)
    assert done.code == 2
    assert done.err == f"outrider: {tmp_path / 'file' / 'campus'}: Not a directory\n"


def test_an_interrupted_command_ends_quietly_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # nobody writes to it: the command waits for ever
    with interruptible():
        running = subprocess.Popen([COMMAND, "ingest", pipe], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + WITHIN_S
        while "wait" not in Path(f"/proc/{running.pid}/wchan").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=WITHIN_S)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "Traceback" not in err


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [COMMAND, "plugins"], stdout=write_end, stderr=subprocess.PIPE, text=True,
            timeout=WITHIN_S, check=False,
        )  # fmt: skip
    finally:
        os.close(write_end)
    assert done.returncode == 141
    assert done.stderr == ""


def test_a_full_disk_is_told_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, "plugins"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=WITHIN_S, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "outrider: the output: No space left on device\n"

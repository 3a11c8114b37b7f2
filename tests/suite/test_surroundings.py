"""Tests pass in every environment of a newcomer: a sample of each kind in each."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.peers.presence import require_allowed
from tests.suite.copied_tree import TREE, copy_tree, python_path

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

SAMPLE: Final = (
    "tests/adapters/readers/test_htcondor_dates.py",  # zones and local time
    "tests/cli/test_starting_up.py",  # processes, interrupts, closed streams
    "tests/docs/test_first_page.py",  # what the README says
    "tests/lab/test_stopped_commands.py",  # interrupted and killed commands
    "tests/peers/test_prometheus.py",  # a real peer
    "tests/peers/test_sweep_on_slurm.py",  # another, and an interrupt
    "tests/service/mqtt/test_demo.py",  # a command that runs for long
    "tests/service/running/test_from_start_to_end.py",  # the daemon and its signals
    "tests/service/running/test_private_state.py",  # modes of files
    "tests/service/twin/test_child.py",  # priorities
    "tests/service/web/test_page_of_starts.py",  # a real browser
)
"""Files of tests that depend on what surrounds them more than others do."""

KINDS: Final = {
    "in the background, with interrupts and hang-ups ignored": 'trap "" INT HUP; {tests} & wait $!',
    "at a low priority": "nice -n 5 {tests}",
    "in a zone far from UTC": "TZ=Asia/Kathmandu {tests}",
    "in the C locale": "unset LC_ALL LC_CTYPE; LANG=C {tests}",
    "without a home": "unset HOME; {tests}",
    "with a mask that shuts others out": "umask 077; {tests}",
    "with standard input closed": "{tests} <&-",
    "without a terminal": "setsid --wait {tests} </dev/null 2>&1 | cat; exit ${{PIPESTATUS[0]}}",
}
"""Commands that a shell runs before, or when, it starts the tests."""

NOBODY: Final = 65534
HANGS_AFTER_S: Final = 1500.0
_WORKERS: Final = "3"


def command(python: Path | str = sys.executable) -> str:
    """Return the words that start the sample, for a shell."""
    words = [python, "-m", "pytest", "-q", "-n", _WORKERS, "--dist", "loadfile", "-p",
             "no:cacheprovider", "-m", "not alone and not long", *SAMPLE]  # fmt: skip
    return shlex.join(map(str, words))


def start(script: str, tree: Path, **environment: str) -> "subprocess.Popen[str]":
    """Start a shell script in a checkout; its output is one text."""
    return subprocess.Popen(
        ["bash", "-c", script], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env={**os.environ, "PYTHONPATH": python_path(tree), **environment},
    )  # fmt: skip


def passed(process: "subprocess.Popen[str]") -> str:
    """Wait for the tests, which have to pass, and return what they printed."""
    out, _ = process.communicate(timeout=HANGS_AFTER_S)
    assert process.returncode == 0, out[-30_000:]
    assert re.search(r"\b\d+ passed", out), out
    return out


def test_the_sample_is_there() -> None:
    assert [file for file in SAMPLE if not (TREE / file).is_file()] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_passes(kind: str) -> None:
    passed(start(KINDS[kind].format(tests=command()), TREE))


def test_the_sample_passes_in_a_path_with_a_blank(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "a folder with blanks" / "outrider")
    passed(start(command(), tree))


def test_the_sample_passes_twice_at_once(tmp_path: Path) -> None:
    runs = [start(command(), copy_tree(tmp_path / name)) for name in ("one", "other")]
    for run in runs:
        passed(run)


def as_nobody(*words: object) -> list[str]:
    """Return words that a user without any rights runs."""
    ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return ["setpriv", *ids, "env", "-u", "HOME", *map(str, words)]


def environment_for_others(folder: Path, tree: Path) -> Path | None:
    """Make a virtual environment that every user may run; None where no Python is open to all.

    It has the packages of the one that runs here, and the copy of the checkout.
    """
    named = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [Path(sys.base_prefix, "bin", named), Path("/usr/bin", named)]
    open_to_all = [
        one
        for one in found
        if subprocess.run(as_nobody(one, "-c", ""), capture_output=True, check=False).returncode
        == 0
    ]
    if not open_to_all:
        return None
    subprocess.run([open_to_all[0], "-m", "venv", "--without-pip", folder], check=True)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    own = folder / "lib" / named / "site-packages"
    lines = [*python_path(tree).split(":"), packages]
    (own / "here.pth").write_text("".join(f"{line}\n" for line in lines))
    script = folder / "bin" / "outrider"
    script.write_text(
        f"#!{folder}/bin/python\n"
        "import sys\nfrom outrider.cli.entry import main\n"
        "if __name__ == '__main__':  # a process that is spawned imports this file\n"
        "    sys.exit(main())\n"
    )
    script.chmod(0o755)
    return folder / "bin" / "python"


def test_the_sample_passes_for_a_user_without_rights_and_says_what_it_skips() -> None:
    require_allowed("another user", None if os.geteuid() == 0 else "only root may be another user")
    folder = Path("/var/tmp/outrider-surroundings")  # pytest's own folders are for its user alone
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
        tree = copy_tree(folder / "outrider")
        python = environment_for_others(folder / "environment", tree)
        require_allowed("another user", None if python else "no Python here is open to all users")
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", tree], check=True)
        assert python is not None
        words = shlex.join(as_nobody("bash", "-c", f"{command(python)} -rs"))
        out = passed(start(words, tree, CI="false", PYTEST_DEBUG_TEMPROOT="/var/tmp"))
        skips = [line for line in out.splitlines() if line.startswith("SKIPPED")]
        assert all(len(line.partition(": ")[2]) > 10 for line in skips), skips
    finally:
        shutil.rmtree(folder)

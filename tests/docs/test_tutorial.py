"""The tutorial, command by command, as it stands there."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, WITHIN_S

SET_UP = ("make ", "export PATH=")
"""Steps of the tutorial that are already done in the test environment."""


def commands(page: str) -> list[str]:
    """Lines of its shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_command_does_what_the_page_says(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs/tutorial.md").read_text(encoding="utf-8")
    lines = commands(page)
    assert [line.split()[0] for line in lines[:3]] == ["make", "export", "mkdir"]
    script, said = ["set -eu", f'export PATH="{Path(COMMAND).parent}:$PATH"'], {}
    for number, line in enumerate(lines):
        if not line.startswith(SET_UP):
            script.append(f"{line} > {tmp_path}/said-{number}")
            said[line.split()[1]] = tmp_path / f"said-{number}"
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path, capture_output=True, text=True, timeout=4 * WITHIN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    replayed, answered = said["replay"].read_text(), said["twin"].read_text()
    for word in ("energy, wasted [kWh]", "evictions", "overhead, mean [min]"):
        assert word in replayed
    found = re.search(r"energy of runs +(\S+) \((\S+) to (\S+)\)", answered)
    promised = re.search(r"\*energy of runs (\S+) \((\S+) to (\S+)\)\*", page)
    assert found is not None
    assert promised is not None
    for got, told in zip(found.groups(), promised.groups(), strict=True):
        assert float(got) == pytest.approx(float(told), abs=0.006)
    assert list((tmp_path / "tutorial" / "report").glob("*.html"))

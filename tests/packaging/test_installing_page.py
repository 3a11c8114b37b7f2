"""The page about installing: what it quotes is what Debian says, and what it names is there."""

import re
import subprocess
from pathlib import Path

import pytest

from tools.lock import project
from tools.wheelhouse import EXTRAS

SYSTEM_PYTHON = Path("/usr/bin/python3")


@pytest.fixture
def page(repository: Path) -> str:
    """The text of the page on installing."""
    return (repository / "docs/installing.md").read_text(encoding="utf-8")


def test_it_quotes_the_error_of_debians_own_pip(page: str, tmp_path: Path) -> None:
    """The install is refused before any index is queried."""
    asked = [str(SYSTEM_PYTHON), "-m", "pip", "--version"]
    if (
        not SYSTEM_PYTHON.exists()
        or subprocess.run(asked, capture_output=True, check=False).returncode
    ):
        pytest.skip("no pip of the system's own Python here (apt install python3-pip)")
    managed = list(Path("/usr/lib").glob("python3*/EXTERNALLY-MANAGED"))
    if not managed or "Debian" not in Path("/etc/os-release").read_text():
        pytest.skip("this system's Python is not managed as Debian's is")
    done = subprocess.run(
        [str(SYSTEM_PYTHON), "-m", "pip", "install", "--no-index", "outrider"],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode != 0
    quoted = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert quoted is not None
    assert done.stderr.startswith(quoted[1])


def test_every_extra_of_a_site_has_its_row(page: str) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", page, re.MULTILINE))
    assert rows.keys() == {*EXTRAS}
    for extra, brought in rows.items():
        asked = {re.split(r"[<>=]", one)[0] for one in project()["optional-dependencies"][extra]}
        assert {*brought.split(", ")} == asked

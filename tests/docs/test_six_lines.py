"""CONTRIBUTING begins with a policy that works as shown."""

import json
import re
from pathlib import Path

from tests.cli.running import shell
from tests.docs.pages import REPOSITORY, blocks

SWF = """\
; MaxProcs: 1
; UnixStartTime: 1700000000
1 0 -1 100 1 -1 -1 1 100 -1 1 1 1 -1 1 1 -1 -1
2 1 -1 50 1 -1 -1 1 50 -1 1 1 1 -1 1 1 -1 -1
3 2 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 1 -1 -1
"""
"""One CPU; while job 1 runs, a long one comes and then a short one."""


def as_shown(folder: Path) -> str:
    """Install what CONTRIBUTING shows, as text alone; returns the policy's source."""
    code, declared = list(blocks(REPOSITORY / "CONTRIBUTING.md", "python", "toml"))[:2]
    found = re.search(r'(\w+) = "(\w+):(\w+)"', declared.text)
    assert found is not None
    name, module, kind = found.groups()
    (folder / f"{module}.py").write_text(code.text)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[outrider.policies]\n{name} = {module}:{kind}\n")
    return code.text


def started(folder: Path, policy: str) -> list[str]:
    """Return which jobs a policy started, in order."""
    (folder / "three.swf").write_text(SWF)
    ledger = folder / f"{policy}.sqlite"
    path = {"PYTHONPATH": str(folder)}
    words = ("replay", folder / "three.swf", "--policy", policy, "--ledger", ledger)
    done = shell(*words, **path)
    assert done.code == 0, done.err
    rows = map(json.loads, shell("ledger", ledger, "--export", "jsonl").out.splitlines())
    return [row["job"] for row in rows if row["action"] == "start"]


def test_the_first_policy_in_contributing_is_six_lines_and_works_as_shown(tmp_path: Path) -> None:
    code = as_shown(tmp_path)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 6, "no longer a policy in six lines"
    assert started(tmp_path, "fifo") == ["1", "2", "3"]
    assert started(tmp_path, "shortest_first") == ["1", "3", "2"]


def test_contributing_begins_with_it() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    first = re.findall(r"^## (.+)$", text, re.MULTILINE)[0]
    assert first == "A policy in six lines"

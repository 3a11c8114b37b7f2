"""The examples beside the training, and what is said where Gymnasium is missing."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_figures_are_printed_for_every_rule_and_the_net(repository: Path) -> None:
    done = run(str(repository / "examples" / "gymnasium" / "figures.py"), "--seeds", "2")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if " ± " in line]
    assert len(rows) == 3 * 6
    assert sum(line.startswith("| window_net | ") for line in rows) == 3


def test_what_the_example_with_stable_baselines_takes_of_outrider_is_there(
    repository: Path,
) -> None:
    """Check the example without running it, because it would need torch."""
    path = repository / "examples" / "gymnasium" / "with_stable_baselines3.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    taken = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("outrider")
        for alias in node.names
    ]
    assert taken
    for module, name in taken:
        assert hasattr(importlib.import_module(str(module)), name)


def test_without_gymnasium_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "gymnasium.py").write_text("raise ModuleNotFoundError('no gymnasium')\n")
    done = run("-c", "import outrider_lab.gym", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "use pip install 'outrider[gym]'" in done.stderr


def test_the_policy_that_runs_a_trained_net_needs_no_gymnasium(tmp_path: Path) -> None:
    (tmp_path / "gymnasium.py").write_text("raise ModuleNotFoundError('no gymnasium')\n")
    code = (
        "import outrider\n"
        "trace = outrider.generate_grid(1, row=0.4, jobs=30, machines=3)\n"
        "print(outrider.replay(trace, policy='window_net').jobs['completed'])"
    )
    assert run("-c", code, PYTHONPATH=str(tmp_path)).stdout.split() == ["30"]

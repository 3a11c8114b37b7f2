"""Test of the clear message if HTCondor's bindings are missing."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.modules["htcondor2"] = None
from outrider.api import PluginError
try:
    import outrider_adapters.mock_condor.pool
except PluginError as error:
    print(error)
"""


def test_the_message_says_what_to_install() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.endswith("pip install 'outrider[htcondor]'\n")
    assert len(said.stdout.splitlines()) == 1


def test_what_needs_them_is_skipped_by_reason_and_breaks_no_collection(
    repository: Path, tmp_path: Path
) -> None:
    for name in ("htcondor2", "classad2", "htcondor", "classad"):
        missing = f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')\n"
        (tmp_path / f"{name}.py").write_text(missing)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("CI", None)
    folders = ["tests/adapters/htcondor", "tests/adapters/mock_condor", "tests/service/config"]
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *folders],
        capture_output=True, text=True, check=False, timeout=240, cwd=repository, env=environment,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout
    assert "outrider[htcondor] is not installed" in said.stdout
    assert "::test_every_setting_refuses" in said.stdout

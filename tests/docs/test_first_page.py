"""The first forty lines of the README: what a newcomer does there works."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from outrider.service.config.loaded import check_config
from tests.cli.running import shell
from tests.docs.pages import REPOSITORY, blocks

HEAD = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:40]
LOG = """\
000 (001.000.000) 2026-11-21 10:00:00 Job submitted from host: <10.0.0.1:9618>
...
001 (001.000.000) 2026-11-21 10:00:20 Job executing on host: <10.0.0.7:9618?alias=node7>
...
004 (001.000.000) 2026-11-21 10:01:20 Job was evicted.
\t(0) CPU times
...
"""


def line_with(part: str) -> str:
    (found,) = (line for block in blocks(REPOSITORY / "README.md", "sh")
                for line in block.text.splitlines() if part in line and line in HEAD)  # fmt: skip
    return found


def test_they_hold_a_picture_the_two_commands_and_every_stage() -> None:
    text = "\n".join(HEAD)
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert all((REPOSITORY / picture).is_file() for picture in pictures)
    assert len(pictures) == 1
    assert line_with("make demo")
    assert line_with("make test")
    assert [stage for stage in ("an hour", "a day", "two weeks") if f"| {stage} |" in text] == [
        "an hour", "a day", "two weeks",
    ]  # fmt: skip


@pytest.mark.parametrize("adapter", ["htcondor", "slurm", "pbs"])
def test_the_configuration_that_a_line_writes_is_right(adapter: str, tmp_path: Path) -> None:
    command = line_with("printf").replace("[adapters.htcondor]", f"[adapters.{adapter}]", 1)
    subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True, timeout=60)
    table = tomllib.loads((tmp_path / "outrider.toml").read_text())
    assert list(table["adapters"]) == [adapter]
    assert check_config(table, "outrider.toml").config.mode == "shadow"


def test_a_log_tells_within_the_first_hour_what_the_table_promises(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    log.write_text(LOG)
    told = shell("ingest", log)
    assert told.code == 0, told.err
    for part in ("users with the longest total wait", "users by badput", "machines by badput",
                 "black holes"):  # fmt: skip
        assert part in told.out

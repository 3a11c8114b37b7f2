"""`outrider levers` and `outrider release`, where there is a lever and where there is none."""

from pathlib import Path

import pytest

from tests.cli.running import outrider, shell

NO_BINDINGS = "outrider[htcondor] is not installed"


def test_every_lever_is_told_with_the_decisions_that_it_carries_out() -> None:
    pytest.importorskip("htcondor2", reason=NO_BINDINGS)
    told = outrider("levers", "--json").json()
    assert {(lever["adapter"], lever["decisions"]) for lever in told} >= {
        ("htcondor", "start, defer")
    }
    assert all(lever["what it does"] for lever in told)


def test_what_has_to_be_installed_is_printed_as_a_file() -> None:
    pytest.importorskip("htcondor2", reason=NO_BINDINGS)
    said = shell("levers", "htcondor")
    assert said.code == 0
    assert said.out.startswith("# Outrider's leases")
    assert "JOB_TRANSFORM_OutriderLeases @=end" in said.out
    assert said.out.endswith("outrider@$(UID_DOMAIN)\n")


def test_an_adapter_without_a_lever_says_so() -> None:
    said = shell("levers", "logtail")
    assert (said.code, said.out) == (1, "logtail: nothing to install\n")


def test_there_is_nothing_to_release_where_nothing_can_be_changed(tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text('[adapters.logtail]\npaths = ["log"]\n')
    said = shell("release", "--config", str(config))
    assert (said.code, said.out) == (0, "No configured adapter has a lever.\n")

"""`outrider levers` and `outrider release`, where there is a lever and where there is none."""

import json
from pathlib import Path

import pytest

from outrider.service.daemon import levers
from tests.acting.levers import Noting
from tests.cli.running import outrider, shell

NO_BINDINGS = "outrider[htcondor] is not installed"


class Reverting(Noting):
    """A lever that reverts nothing."""

    def withdraw_all(self) -> int:
        return 0


class Failing(Noting):
    """A lever that cannot revert what it changed."""

    name = "failing"

    def withdraw_all(self) -> int:
        raise OSError("gone")


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


def test_release_without_a_daemon_returns_1_if_something_was_not_reverted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(f'state_dir = "{tmp_path}/state"\n[adapters.logtail]\npaths = ["log"]\n')
    made = {"x": [Failing(), Reverting()]}
    monkeypatch.setattr(levers, "make_levers", lambda adapters, folder: made)
    said = outrider("release", "--config", config)
    assert said.code == 1
    assert said.out.splitlines() == [
        "x: failing: not reverted: OSError: gone.", "x: noting: reverted for 0 jobs."
    ]  # fmt: skip
    told = outrider("release", "--config", config, "--json")
    answer = json.loads(told.out)
    assert (told.code, answer["outcome"]) == (1, "failed")
    assert [one["problem"] for one in answer["released"]] == ["OSError: gone", ""]


def test_there_is_nothing_to_release_where_nothing_can_be_changed(tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text('[adapters.logtail]\npaths = ["log"]\n')
    said = shell("release", "--config", str(config))
    assert (said.code, said.out) == (0, "No configured adapter has a lever.\n")

"""A plugin that was written against another version of its contract is named; the rest start."""

import json
from pathlib import Path
from typing import Any

import pytest

from outrider.api import LogReader, Policy
from outrider.plugins.finding import (
    ADAPTERS,
    CONTRACTS,
    ESTIMATORS,
    POLICIES,
    READERS,
    declared_version,
    find,
    load,
    wrong_version,
)
from outrider_policies.rules.placements import LowestWatts, WattsHold
from tests.cli.running import shell

MODULE = """\
from outrider.api import Adapter, LogReader, Policy, RunTimeEstimator


class Silent{base}:
    name = description = "silent"


class Older{base}:
    name = description = "older"
    {version}0
"""
UTILITY = '''\
from typing import ClassVar

from msgspec import Struct


class Silent(Struct, frozen=True):
    """Worth the same at all times."""

    def unit(self, turnaround_s, ideal_s):
        return 1.0 + 0.0 * turnaround_s


class Older(Silent, frozen=True):
    api_version: ClassVar[int] = 0
'''
BASES = {
    "outrider.adapters": "Adapter",
    "outrider.policies": "Policy",
    "outrider.readers": "LogReader",
    "outrider.estimators": "RunTimeEstimator",
    "outrider.utilities": "",
}


def install(folder: Path, group: str) -> None:
    """Two plugins of a group: one that says no version, one of another version."""
    base = f"({BASES[group]})" if BASES[group] else ""
    text = MODULE.format(base=base, version="api_version = ") if base else UTILITY
    (folder / "unfit.py").write_text(text)
    info = folder / "unfit-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: unfit\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{group}]\nsilent = unfit:Silent\nolder = unfit:Older\n"
    )


@pytest.mark.parametrize("group", list(BASES))
def test_a_plugin_of_any_kind_says_itself_what_it_was_written_against(
    tmp_path: Path, group: str
) -> None:
    install(tmp_path, group)
    done = shell("plugins", "--json", PYTHONPATH=str(tmp_path))
    assert done.code == 1
    told: dict[str, Any] = {p["name"]: p for p in json.loads(done.out)[group.rpartition(".")[2]]}
    assert told["silent"]["state"] == told["older"]["state"] == "broken"
    assert "expected api_version = 1 in class Silent" in told["silent"]["why"]
    assert "version 0 of the contract, this Outrider has version 1" in told["older"]["why"]
    assert [p for p in told.values() if p["state"] == "ok"], "the others are hidden"


def test_a_policy_of_another_version_is_refused_by_name_and_the_rest_replay(
    tmp_path: Path, campus: Path
) -> None:
    install(tmp_path, POLICIES)
    words = ("replay", campus, "--until", 1000, "--policy")
    assert shell(*words, "fifo", PYTHONPATH=str(tmp_path)).code == 0
    used = shell(*words, "older", PYTHONPATH=str(tmp_path))
    assert used.code == 2
    assert 'policy "older" (unfit:Older) was written against version 0' in used.err


def test_a_version_that_comes_with_somebody_elses_class_does_not_count() -> None:
    borrowed = type("Borrowed", (LowestWatts,), {"__module__": "somebody.policies"})
    assert declared_version(borrowed) is None
    assert "does not say" in wrong_version(CONTRACTS[POLICIES], borrowed)


def test_a_version_of_the_same_package_counts_for_its_variants() -> None:
    assert issubclass(WattsHold, LowestWatts)
    variant = type("Variant", (WattsHold,), {"__module__": "outrider_policies.variant"})
    assert declared_version(variant) == declared_version(LowestWatts)


@pytest.mark.parametrize("version", [True, 1.0, "1", 2])
def test_only_the_number_itself_will_do(version: object) -> None:
    plugin = type("Odd", (LogReader,), {"__module__": "odd", "api_version": version})
    assert "expected a release of it" in wrong_version(CONTRACTS["outrider.readers"], plugin)


def test_outriders_bases_declare_no_version_that_a_plugin_could_inherit() -> None:
    for contract in CONTRACTS.values():
        assert not hasattr(contract.base, "api_version")
    assert "api_version" not in vars(Policy)


def test_every_plugin_of_this_distribution_fits() -> None:
    told = {
        (group, name): wrong_version(contract, load(group, name))
        for group, contract in CONTRACTS.items()
        for name in find(group)
    }
    own = {ADAPTERS, ESTIMATORS, POLICIES, READERS}  # the shapes of utilities are no plugins
    assert {group for group, _ in told} >= own
    assert {place: why for place, why in told.items() if why} == {}

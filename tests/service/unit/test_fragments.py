"""A proposal as it is printed: it is a configuration, and it groups the machines that were seen."""

import tomllib
from typing import Any

import pytest

from outrider.service.config.declarations import Config
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.unit.suggestion import Seen, fragment, proposed

LAB = {f"lib-{n:02}": "default" for n in range(1, 41)} | {f"phys-{n}": "default" for n in range(9)}
ROOMS = {name: {"Room": name.partition("-")[0], "Serial": name} for name in LAB}


def config_of(**tables: Any) -> Config:
    return check_config({"adapters": {"simulated": {}}} | tables, "test").config


def checked(text: str) -> LoadedConfig:
    """Return the text, as `outrider check-config` takes it."""
    return check_config(tomllib.loads(text), "the proposal")


def test_machines_that_are_only_known_by_their_jobs_are_grouped_by_patterns() -> None:
    config = config_of(adapters={"log": {"type": "logtail", "paths": ["/var/log/x"]}})
    loaded = checked(fragment(config, [Seen("log", LAB)]))
    assert {name: table.match for name, table in loaded.config.clusters.items()} == {
        "lib": ["lib-*"], "phys": ["phys-*"],
    }  # fmt: skip
    assert loaded.describe_machine("lib-07").cluster == "lib"
    assert loaded.config.adapters == config.adapters


def test_an_attribute_of_the_slots_is_named_in_the_adapters_table() -> None:
    pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
    config = config_of(adapters={"htcondor": {"look_s": 3.0}})
    seen = Seen("htcondor", LAB, ROOMS, "cluster_attribute", "machine_clusters")
    text = fragment(config, [seen])
    loaded = checked(text)
    assert loaded.config.adapters == {"htcondor": {"look_s": 3.0, "cluster_attribute": "Room"}}
    assert set(loaded.config.clusters) == {"lib", "phys"}
    assert "# 49 machines, grouped by their attribute Room.\n[adapters.htcondor]" in text
    assert "[clusters.lib]\n# 40 machines: lib-01, lib-02, lib-03, ...\n# active_w = " in text


def test_without_one_patterns_of_names_are_the_adapters() -> None:
    config = config_of(adapters={"slurm": {}})
    named = fragment(config, [Seen("slurm", LAB, {}, None, "machine_clusters")])
    table = checked(named).config.adapters["slurm"]
    assert table == {"machine_clusters": {"phys-*": "phys", "lib-*": "lib"}}


def test_groups_that_are_told_already_stay() -> None:
    nodes = {f"n{n}": "batch" if n < 8 else "gpu" for n in range(10)}
    proposal = proposed(Seen("slurm", nodes, {}, None, "machine_clusters"))
    assert (proposal.settings, proposal.how) == ({}, "as the adapter reports them now")
    assert [(g.name, len(g.machines)) for g in proposal.grouping.groups] == [
        ("batch", 8), ("gpu", 2),
    ]  # fmt: skip
    one_partition = {f"n{n}": "batch" for n in range(9)} | {f"gpu{n}": "batch" for n in range(2)}
    split = proposed(Seen("slurm", one_partition, {}, None, "machine_clusters"))
    assert split.settings == {"machine_clusters": {"gpu*": "gpu", "n*": "n"}}
    alike = proposed(Seen("slurm", {f"n{n}": "batch" for n in range(9)}, {}, None, "x"))
    assert [group.name for group in alike.grouping.groups] == ["batch"]


def test_what_was_filled_in_before_is_kept() -> None:
    clusters = {"lib": {"match": ["lib-*", "old-lib-*"], "active_w": 57.0, "open": "always"}}
    text = fragment(config_of(clusters=clusters), [Seen("simulated", LAB)])
    library = checked(text).config.clusters["lib"]
    assert (library.match, library.active_w) == (["lib-*", "old-lib-*"], 57.0)
    assert "# idle_w = " in text


@pytest.mark.parametrize(
    "machines",
    [
        {}, {"only": "default"}, {"ada": "default", "bob": "default"},
        {f'pc "{n}"\n[x]': "default" for n in range(3)},
        {f"図書館-{n}": "default" for n in range(3)},
        {f"n{n}": f'ro"om\\{n % 2}' for n in range(6)}, {f"{n:04}": "default" for n in range(9)},
    ],
)  # fmt: skip
def test_whatever_the_names_are_it_is_a_configuration(machines: dict[str, str]) -> None:
    loaded = checked(fragment(config_of(), [Seen("simulated", machines)]))
    assert list(loaded.config.adapters) == ["simulated"]


def test_groups_that_only_a_few_machines_are_told_to_be_in_are_not_taken_over() -> None:
    nodes = {f"n{n}": "gpu" if n < 8 else "default" for n in range(10)}
    proposal = proposed(Seen("slurm", nodes, {}, None, "machine_clusters"))
    assert proposal.how == "by the beginning of their names"

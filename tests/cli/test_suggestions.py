"""`outrider doctor --suggest`: machine groups proposed from what the adapters see."""

from pathlib import Path

import pytest

from tests.cli.running import outrider


def started(job: int, host: str) -> str:
    """A job that ran on a host, as an event log records it."""
    head = f"({job}.000.000) 2026-11-21 10:{job:02}"
    return (
        f"000 {head}:00 Job submitted from host: <10.0.0.1:9>\n...\n"
        f"001 {head}:30 Job executing on host: <10.0.1.{job}:9618?alias={host}>\n...\n"
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A site with an event log of jobs on machines of two rooms."""
    hosts = [f"lib-{n:02}.example.org" for n in range(1, 9)] + [f"phys-{n}" for n in (1, 2, 3)]
    log = tmp_path / "EventLog"
    log.write_text("".join(started(job, host) for job, host in enumerate(hosts, 1)))
    config = tmp_path / "outrider.toml"
    config.write_text(f'[adapters.log]\ntype = "logtail"\npaths = ["{log}"]\n')
    return config


def test_what_is_printed_is_a_configuration_with_groups(config: Path, tmp_path: Path) -> None:
    done = outrider("doctor", "--suggest", "--config", config)
    assert (done.code, done.err) == (0, "")
    proposed = tmp_path / "proposed.toml"
    proposed.write_text(done.out)
    told = outrider("check-config", proposed, "--json").json()
    clusters = told["config"]["clusters"]
    assert {name: table["match"] for name, table in clusters.items()} == {
        "lib": ["lib-*"], "phys": ["phys-*"],
    }  # fmt: skip
    assert told["adapters"]["log"]["settings"]["paths"] == [str(tmp_path / "EventLog")]
    assert "# 11 machines, grouped by the beginning of their names.\n" in done.out


def test_for_machines_there_are_the_groups_and_the_text(config: Path) -> None:
    told = outrider("doctor", "--suggest", "--config", config, "--json").json()
    assert [len(machines) for machines in told["groups"].values()] == [3, 8]
    assert "[clusters.phys]" in told["toml"]


def test_where_no_machine_is_seen_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "EventLog").write_text("")
    config = tmp_path / "outrider.toml"
    config.write_text(f'[adapters.log]\ntype = "logtail"\npaths = ["{tmp_path / "EventLog"}"]\n')
    done = outrider("doctor", "--suggest", "--config", config)
    assert done.code == 1
    assert "# No machine was seen." in done.out


def test_an_adapter_whose_source_does_not_answer_is_told(tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(f'[adapters.slurm]\ncommands = "{tmp_path}"\n')
    done = outrider("doctor", "--suggest", "--config", config)
    assert done.code == 1
    assert "adapter slurm: " in done.err
    assert "[adapters.slurm]\ncommands = " in done.out

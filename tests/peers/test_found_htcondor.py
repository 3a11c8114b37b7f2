"""Test of `outrider install-service` with a real `condor_config_val` and no running pool."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, shell
from tests.free_port import free_port
from tests.peers.presence import PEERS_DIR, require_peer

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

ROOT = PEERS_DIR / "htcondor"
LIBRARIES = ":".join(
    str(ROOT / folder) for folder in ("usr/lib", "usr/lib/x86_64-linux-gnu", "usr/lib/condor")
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PATH with HTCondor's own command before all else, which runs with its own libraries."""
    program, loader = ROOT / "usr/bin/condor_config_val", ROOT / "lib64/ld-linux-x86-64.so.2"
    there = program.exists() and loader.exists()
    require_peer("condor_config_val", None if there else f"not below {ROOT}")
    command = tmp_path / "bin/condor_config_val"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {loader} --library-path {LIBRARIES} {program} "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}:/usr/bin:/bin"


def install(folder: Path, path: str, condor_config: Path | None) -> Done:
    words = ("install-service", "--config", folder / "outrider.toml", "--root", folder / "root")
    named = "" if condor_config is None else str(condor_config)
    return shell(*words, PATH=path, CONDOR_CONFIG=named)


def written(folder: Path) -> dict[str, Any]:
    file = folder / "root" / (folder / "outrider.toml").relative_to("/")
    return tomllib.loads(file.read_text())


def test_a_host_of_a_pool_gets_its_adapter(tmp_path: Path, path: str) -> None:
    config, collector = tmp_path / "condor_config", f"127.0.0.1:{free_port()}"
    config.write_text(f"COLLECTOR_HOST = {collector}\n")
    done = install(tmp_path, path, config)
    assert done.code == 0, done
    assert written(tmp_path)["adapters"] == {"htcondor": {}}
    assert f"HTCondor (condor_config_val COLLECTOR_HOST: {collector})" in done.out


def test_a_host_with_the_commands_alone_is_in_no_pool(tmp_path: Path, path: str) -> None:
    nothing = tmp_path / "condor_config"
    nothing.write_text("")
    done = install(tmp_path, path, nothing)
    assert done.code == 2, done
    assert "no batch system was found on this host" in done.err
    assert not (tmp_path / "root").exists()

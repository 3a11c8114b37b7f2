"""The unit as systemd itself judges it: no complaint, little exposure."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.systemd

EXPOSURE_LIMIT = 2.0
RequirePeer = Callable[[str, str | None], None]


SINCE = {"restart-steps.conf.example": 254}
"""The version of systemd that a drop-in needs, as it says itself."""


@pytest.fixture
def units(repository: Path, tmp_path: Path, require_peer: RequirePeer) -> Path:
    """A folder with the unit and every drop-in in force, their commands made to exist.

    systemd looks whether the command of a unit is there; on a build host Outrider's is not.
    """
    missing = None if shutil.which("systemd-analyze") else "systemd-analyze is not installed"
    require_peer("systemd", missing)
    source = repository / "systemd"
    drop_ins = tmp_path / "outrider.service.d"
    drop_ins.mkdir()
    command = re.compile(r"^ExecStart=/\S+/outrider\b", re.MULTILINE)
    unit = (source / "outrider.service").read_text()
    assert command.search(unit), "the unit starts something else than outrider"
    (tmp_path / "outrider.service").write_text(command.sub("ExecStart=/bin/sh", unit))
    for example in sorted((source / "outrider.service.d").glob("*.conf.example")):
        if version() < SINCE.get(example.name, 0):
            continue  # this systemd would complain of keys that it does not know
        text = command.sub("ExecStart=/bin/sh", example.read_text())
        (drop_ins / example.name.removesuffix(".example")).write_text(text)
    assert list(drop_ins.glob("*.conf")), "no drop-in found"
    return tmp_path


def version() -> int:
    """Of the systemd that is here."""
    first = analyze("--version").stdout.split()
    return int(first[1])


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=60, check=False
    )


def complaints(units: Path) -> str:
    """All that `verify` prints: for an unknown key it complains and still exits with 0."""
    done = analyze("verify", "--man=no", str(units / "outrider.service"))
    return done.stdout + done.stderr


def test_systemd_has_no_complaint_of_the_unit_and_its_drop_ins(units: Path) -> None:
    assert complaints(units) == ""


@pytest.mark.parametrize("file", ["outrider.service", "outrider.service.d/read-logs.conf"])
def test_a_misspelled_key_would_be_noticed(units: Path, file: str) -> None:
    with (units / file).open("a") as unit:
        unit.write("\n[Service]\nProtectSytem=strict\n")
    assert "ProtectSytem" in complaints(units)


def test_the_unit_exposes_little(units: Path) -> None:
    unit = units / "outrider.service"
    done = analyze(
        "security", "--offline=true", f"--threshold={EXPOSURE_LIMIT * 10:.0f}", str(unit)
    )
    overall = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert overall, done.stdout + done.stderr
    assert float(overall[1]) <= EXPOSURE_LIMIT, done.stdout
    assert done.returncode == 0, done.stdout


def test_a_wrong_configuration_is_not_tried_again(repository: Path) -> None:
    """`outrider run` exits with 2 for a wrong key; a restart loop would only fill the journal."""
    unit = (repository / "systemd" / "outrider.service").read_text().splitlines()
    assert "Restart=on-failure" in unit
    assert "RestartPreventExitStatus=2" in unit


def test_no_crash_is_final_and_descriptors_are_bounded(repository: Path) -> None:
    unit = (repository / "systemd/outrider.service").read_text().splitlines()
    assert {"StartLimitIntervalSec=0", "Restart=on-failure", "LimitNOFILE=4096"} <= set(unit)
    assert not [line for line in unit if line.startswith("StartLimitBurst")]

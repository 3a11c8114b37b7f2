"""The unit as systemd itself judges it: no complaint, little exposure."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import outrider

pytestmark = pytest.mark.systemd

EXPOSURE_LIMIT = 1.2
RequirePeer = Callable[[str, str | None], None]


SINCE = {"restart-steps.conf.example": 254}
"""The version of systemd that a drop-in needs, as it says itself."""


SERVICES = (
    "outrider.service", "outrider-release.service", "outrider-slurm.service",
    "outrider-twin.service",
)  # fmt: skip
UNITS = (*SERVICES, "outrider-release.timer", "outrider-slurm.socket")
COMMAND = re.compile(r"^ExecStart=/\S+/(?:outrider|python3?)(?= )", re.MULTILINE)


@pytest.fixture
def units(repository: Path, tmp_path: Path, require_peer: RequirePeer) -> Path:
    """A folder with the units and every active drop-in, and stubs of their commands.

    systemd looks whether the command of a unit is there; on a build host Outrider's is not.
    """
    missing = None if shutil.which("systemd-analyze") else "systemd-analyze is not installed"
    require_peer("systemd", missing)
    source = repository / "systemd"
    found = {
        path.name for path in source.iterdir() if path.suffix in (".service", ".socket", ".timer")
    }
    assert found == set(UNITS)
    for name in UNITS:
        unit = (source / name).read_text()
        assert name not in SERVICES or COMMAND.search(unit), f"{name} starts something else"
        (tmp_path / name).write_text(COMMAND.sub("ExecStart=/bin/sh", unit))
    for service in SERVICES:
        (tmp_path / f"{service}.d").mkdir()
        for example in sorted((source / f"{service}.d").glob("*.conf.example")):
            if version() < SINCE.get(example.name, 0):
                continue  # this systemd would complain of keys that it does not know
            text = COMMAND.sub("ExecStart=/bin/sh", example.read_text())
            (tmp_path / f"{service}.d" / example.name.removesuffix(".example")).write_text(text)
        assert list((tmp_path / f"{service}.d").glob("*.conf")), f"no drop-in of {service} found"
    return tmp_path


def version() -> int:
    """Return the version of the installed systemd."""
    first = analyze("--version").stdout.split()
    return int(first[1])


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=60, check=False
    )


def complaints(units: Path, unit: str = "outrider.service") -> str:
    """All that `verify` prints: for an unknown key it complains and still exits with 0."""
    done = analyze("verify", "--man=no", str(units / unit))
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_has_no_complaint_of_a_unit_and_its_drop_ins(units: Path, unit: str) -> None:
    assert complaints(units, unit) == ""


@pytest.mark.parametrize("file", ["outrider.service", "outrider.service.d/read-logs.conf"])
def test_a_misspelled_key_would_be_noticed(units: Path, file: str) -> None:
    with (units / file).open("a") as unit:
        unit.write("\n[Service]\nProtectSytem=strict\n")
    assert "ProtectSytem" in complaints(units)


def exposure(unit: Path) -> float:
    """Return how much a unit exposes, 0 to 10, as systemd counts it."""
    done = analyze("security", "--offline=true", str(unit))
    overall = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert overall, done.stdout + done.stderr
    return float(overall[1])


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_exposes_little(repository: Path, units: Path, name: str) -> None:
    assert exposure(repository / "systemd" / name) <= EXPOSURE_LIMIT, "as it is shipped"
    assert exposure(units / name) <= EXPOSURE_LIMIT, "with every drop-in"


def test_hidden_users_are_counted_as_exposing_less(repository: Path, units: Path) -> None:
    assert exposure(units / "outrider.service") < exposure(repository / "systemd/outrider.service")


def test_what_takes_back_exposes_no_more_than_the_daemon(repository: Path, units: Path) -> None:
    daemon = exposure(repository / "systemd/outrider.service")
    assert exposure(units / "outrider-release.service") <= daemon


def test_what_takes_back_works_on_the_daemons_state_as_its_user(repository: Path) -> None:
    daemon = (repository / "systemd/outrider.service").read_text().splitlines()
    release = (repository / "systemd/outrider-release.service").read_text().splitlines()
    shared = {"DynamicUser=yes", "StateDirectory=outrider", "StateDirectoryMode=0700"}
    assert shared <= set(daemon)
    assert shared | {"User=outrider"} <= set(release), "the name that DynamicUser gives the daemon"


def settings_of(unit: Path) -> set[str]:
    """The settings of a unit, whatever their section and order."""
    lines = unit.read_text().splitlines()
    return {line for line in lines if "=" in line and not line.startswith("#")}


def test_what_asks_the_twin_may_do_and_see_what_the_daemon_may_but_compile(
    repository: Path,
) -> None:
    daemon = settings_of(repository / "systemd/outrider.service")
    twin = settings_of(repository / "systemd/outrider-twin.service")
    named = ("Protect", "Private", "Restrict", "SystemCall", "NoNew", "Lock", "Capab", "Memory")
    hardening = {line for line in daemon if line.startswith((*named, "UMask", "State", "Dynamic"))}
    assert {line.split("=")[0] for line in hardening - twin} == {
        "MemoryDenyWriteExecute", "MemoryHigh", "MemoryMax", "RestrictAddressFamilies",
    }, "of addresses it knows none"  # fmt: skip
    assert {"Nice=19", "CPUWeight=idle", "IOSchedulingClass=idle", "PartOf=outrider.service"} < twin
    assert {"PrivateNetwork=yes", "IPAddressDeny=any", "User=outrider"} < twin
    assert len([line for line in twin if line.startswith(("MemoryHigh=", "MemoryMax="))]) == 2


def test_the_helper_removes_nothing_of_slurmctlds_user(repository: Path) -> None:
    """`RemoveIPC=` is about all that a user shares in memory, whichever unit made it."""
    unit = (repository / "systemd/outrider-slurm.service").read_text().splitlines()
    assert "User=slurm" in unit
    assert not [line for line in unit if line.startswith("RemoveIPC=")]


@pytest.fixture
def installed(tmp_path: Path, require_peer: RequirePeer) -> Path:
    """A folder with the unit as `outrider install-service` writes it, with all its drop-ins."""
    missing = None if shutil.which("systemd-analyze") else "systemd-analyze is not installed"
    require_peer("systemd", missing)
    log, secret = tmp_path / "EventLog", tmp_path / "mqtt-password"
    for file, mode in ((log, 0o644), (secret, 0o600)):
        file.write_text("")
        file.chmod(mode)
    config = tmp_path / "outrider.toml"
    config.write_text(
        f'socket_group = "adm"\n[adapters.log]\ntype = "logtail"\npaths = ["{log}"]\n'
        f'[mqtt]\nhost = "192.0.2.9"\nusername = "x"\npassword_file = "{secret}"\n'
        'site = "test"\n'
    )
    done = outrider("install-service", "--config", config, "--root", tmp_path / "root")
    assert done.code == 0, done
    units = tmp_path / "root/etc/systemd/system"
    assert {file.name for file in (units / "outrider.service.d").iterdir()} >= {
        "50-command.conf", "50-network.conf", "50-reading.conf",
    }  # fmt: skip
    return units


INSTALLED = ("outrider.service", "outrider-twin.service")


@pytest.mark.parametrize("unit", INSTALLED)
def test_systemd_has_no_complaint_of_what_is_installed(installed: Path, unit: str) -> None:
    assert complaints(installed, unit) == ""


@pytest.mark.parametrize("unit", INSTALLED)
def test_what_is_installed_exposes_little(installed: Path, unit: str) -> None:
    assert exposure(installed / unit) <= EXPOSURE_LIMIT


def test_users_and_groups_are_made_as_sysusers_reads_them(
    repository: Path, installed: Path, tmp_path: Path
) -> None:
    if (program := shutil.which("systemd-sysusers")) is None:
        pytest.skip("systemd-sysusers is not installed")
    for name, file in {
        "shipped": repository / "systemd/sysusers.d/outrider.conf",
        "written": installed.parents[1] / "sysusers.d/outrider.conf",
    }.items():
        root = tmp_path / name
        (root / "etc").mkdir(parents=True)
        done = subprocess.run(
            [program, f"--root={root}", file], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "outrider:" in (root / "etc/passwd").read_text()
        groups = (root / "etc/group").read_text()
        assert {"outrider", "outrider-admin"} <= {line.split(":")[0] for line in groups.split()}


def test_a_wrong_configuration_is_not_tried_again(repository: Path) -> None:
    """`outrider run` exits with 2 for a wrong key; a restart loop would only fill the journal."""
    unit = (repository / "systemd" / "outrider.service").read_text().splitlines()
    assert "Restart=on-failure" in unit
    assert "RestartPreventExitStatus=2" in unit


def test_no_crash_is_final_and_descriptors_are_bounded(repository: Path) -> None:
    unit = (repository / "systemd/outrider.service").read_text().splitlines()
    assert {"StartLimitIntervalSec=0", "Restart=on-failure", "LimitNOFILE=4096"} <= set(unit)
    assert not [line for line in unit if line.startswith("StartLimitBurst")]

"""`outrider install-service`: every file that follows from a configuration, and no other."""

import grp
import importlib.util
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, outrider

DROP_INS = Path("etc/systemd/system/outrider.service.d")
TABLES = """\
socket_group = "lookers"
[adapters.pool]
type = "logtail"
paths = ["{log}"]
"""
BROKER = """
[mqtt]
host = "192.0.2.9"
username = "outrider"
password_file = "{password}"
site = "test"
"""


class Host:
    """A configuration, and the root of a host for which files are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "outrider.toml"
        self.root = folder / "root"
        self.root.mkdir()
        self.log = folder / "log" / "EventLog"
        self.log.parent.mkdir()
        self.log.write_text("")
        self.password = folder / "mqtt-password"
        self.password.write_text("s3cret\n")
        self.password.chmod(0o600)

    def configure(self, more: str = "") -> None:
        text = TABLES.format(log=self.log) + more.format(password=self.password)
        self.config.write_text(text)

    def install(self, *words: str) -> Done:
        return outrider("install-service", "--config", self.config, "--root", self.root, *words)

    def drop_in(self, name: str) -> str:
        return (self.root / DROP_INS / name).read_text()

    def files(self) -> set[str]:
        found = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return {str(path).removeprefix(f"{DROP_INS}/") for path in found}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A folder in the place of a host's root."""
    return Host(tmp_path)


BASE = {
    "etc/systemd/system/outrider.service", "etc/sysusers.d/outrider.conf", "50-command.conf",
    "50-reading.conf", "etc/systemd/system/outrider-twin.service",
    *(f"etc/systemd/system/outrider-twin.service.d/50-{name}.conf"
      for name in ("command", "reading")),
}  # fmt: skip


def test_it_writes_what_the_configuration_needs_and_says_each_file(host: Host) -> None:
    host.configure()
    done = host.install()
    assert done.code == 0
    assert host.files() == BASE
    for name in BASE:
        assert f"{name}\n" in done.out
    command = host.drop_in("50-command.conf")
    assert f"/outrider run --config {host.config}" in command
    users = (host.root / "etc/sysusers.d/outrider.conf").read_text()
    assert "u outrider " in users
    assert "g lookers -\ng outrider-admin -\n" in users
    assert "SupplementaryGroups=lookers\n" in host.drop_in("50-reading.conf")
    assert "systemctl enable outrider" in done.out


def test_the_service_that_asks_the_twin_comes_unless_it_is_never_asked(host: Host) -> None:
    host.configure()
    done = host.install()
    assert "systemctl enable outrider outrider-twin.service" in done.out
    folder = host.root / "etc/systemd/system/outrider-twin.service.d"
    assert (
        f"/outrider run-twin --config {host.config}\n" in (folder / "50-command.conf").read_text()
    )
    assert (folder / "50-reading.conf").read_text() == host.drop_in("50-reading.conf")
    host.configure("[twin]\nevery_s = 0\n")
    done = host.install()
    assert host.files() == {name for name in BASE if "outrider-twin" not in name}
    assert "outrider-twin" not in done.out.splitlines()[-1]


def test_a_second_time_nothing_changes(host: Host) -> None:
    host.configure()
    host.install()
    lines = host.install().out.splitlines()
    assert sum(line.startswith("unchanged ") for line in lines) == len(BASE)
    assert host.files() == BASE


def test_a_broker_elsewhere_and_its_password_come_and_go_with_the_configuration(
    host: Host,
) -> None:
    host.configure(BROKER)
    done = host.install()
    assert host.files() == BASE | {"50-network.conf", "50-secrets.conf"}
    assert "# MQTT broker: 192.0.2.9\nIPAddressAllow=192.0.2.9\n" in host.drop_in("50-network.conf")
    if os.geteuid() == 0:  # else it is ours, and the service's user is nobody yet
        secrets = host.drop_in("50-secrets.conf")
        assert f"LoadCredential=mqtt-password:{host.password}\n" in secrets
        assert 'use "$CREDENTIALS_DIRECTORY/mqtt-password" instead in' in done.out
    assert "s3cret" not in done.out
    host.configure()
    assert "removed    " in host.install().out
    assert host.files() == BASE


def test_a_credential_that_nobody_hands_over_is_told(host: Host) -> None:
    host.password = Path("$CREDENTIALS_DIRECTORY/broker-password")
    host.configure(BROKER)
    done = host.install()
    note = "the credential broker-password does not exist yet: put it into /etc/credstore/"
    assert note in done.out
    assert "LoadCredential=broker-password:/etc/credstore/broker-password" in host.drop_in(
        "50-secrets.conf"
    )


def test_the_group_of_a_log_is_the_services(host: Host) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to groups")
    group = next(one for one in grp.getgrall() if one.gr_gid)
    os.chown(host.log, 0, group.gr_gid)
    host.log.chmod(0o640)
    host.configure()
    host.install()
    reading = host.drop_in("50-reading.conf")
    assert f"SupplementaryGroups={group.gr_name}\n" in reading
    assert f"BindReadOnlyPaths=-{host.log.parent}\n" in reading, "the unit hides /tmp"


def test_what_somebody_changed_stays_and_the_exit_code_says_so(host: Host) -> None:
    host.configure()
    host.install()
    mine = host.root / DROP_INS / "50-command.conf"
    mine.write_text(mine.read_text() + "Nice=5\n")
    done = host.install()
    assert done.code == 1
    assert "50-command.conf was changed by hand, and is kept" in done.out
    assert mine.read_text().endswith("Nice=5\n")
    assert host.files() == BASE | {"50-command.conf.new"}


def test_a_dry_run_prints_everything_and_writes_nothing(host: Host) -> None:
    host.configure(BROKER)
    done = host.install("--dry-run")
    assert host.files() == set()
    assert "==> /etc/systemd/system/outrider.service\n" in done.out
    assert "IPAddressAllow=192.0.2.9" in done.out
    told = host.install("--dry-run", "--json").json()
    assert {one["did"] for one in told["files"]} == {"written"}
    assert "IPAddressDeny=any" in told["texts"]["/etc/systemd/system/outrider.service"]


class Commands:
    """Commands of batch systems on PATH, and nothing else of those."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("SLURM_CONF", "PBS_CONF_FILE", "CONDOR_CONFIG"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", str(folder))
        self._set = monkeypatch.setenv

    def put(self, name: str, script: str = "exit 1") -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def configured(self, variable: str, file: Path) -> None:
        file.write_text("PBS_SERVER=192.0.2.6\n" if "PBS" in variable else "SlurmUser=slurm\n")
        self._set(variable, str(file))


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """A host on which no batch system is configured yet."""
    return Commands(tmp_path / "commands", monkeypatch)


def test_without_a_configuration_there_is_no_service(host: Host, commands: Commands) -> None:
    done = host.install()
    assert done.code == 2
    assert "outrider check-config --example" in done.err


def written(host: Host) -> dict[str, Any]:
    """The configuration that was written below the root."""
    return tomllib.loads((host.root / host.config.relative_to("/")).read_text())


def test_for_a_slurm_a_configuration_in_shadow_is_written_and_what_to_review_said(
    host: Host, commands: Commands
) -> None:
    commands.put("squeue")
    commands.configured("SLURM_CONF", host.folder / "slurm.conf")
    done = host.install()
    assert done.code == 0, done
    adapters = {"slurm": {"commands": str(commands.folder)}}
    assert (written(host)["mode"], written(host)["adapters"]) == ("shadow", adapters)
    review = [line for line in done.out.splitlines() if line.startswith("review ")]
    assert f"Slurm ({host.folder}/slurm.conf)" in review[0]
    assert "outrider doctor --suggest" in review[-1]
    reading = host.drop_in("50-reading.conf")
    assert f"Environment=SLURM_CONF={host.folder}/slurm.conf\n" in reading
    assert outrider("check-config", host.root / host.config.relative_to("/")).code == 0


def test_commands_without_a_configuration_are_no_batch_system(
    host: Host, commands: Commands
) -> None:
    commands.put("squeue")
    commands.put("condor_config_val")
    done = host.install()
    assert done.code == 2
    assert "no batch system was found on this host" in done.err
    assert host.files() == set()


def test_for_a_pbs_its_server_may_be_reached(host: Host, commands: Commands) -> None:
    commands.put("qstat")
    commands.configured("PBS_CONF_FILE", host.folder / "pbs.conf")
    assert host.install().code == 0
    assert set(written(host)["adapters"]) == {"pbs"}
    assert "IPAddressAllow=192.0.2.6\n" in host.drop_in("50-network.conf")


def test_where_there_are_two_both_are_watched(host: Host, commands: Commands) -> None:
    commands.put("squeue")
    commands.put("qstat")
    commands.configured("SLURM_CONF", host.folder / "slurm.conf")
    commands.configured("PBS_CONF_FILE", host.folder / "pbs.conf")
    told = host.install("--json").json()
    assert set(written(host)["adapters"]) == {"slurm", "pbs"}
    assert "PBS (" in told["review"][0]
    assert "Slurm (" in told["review"][0]


def test_for_htcondor_the_pool_or_without_its_library_the_log(
    host: Host, commands: Commands
) -> None:
    commands.put(
        "condor_config_val",
        f'case $1 in COLLECTOR_HOST) echo 192.0.2.5:9618;; EVENT_LOG) echo "{host.log}";; '
        "*) exit 1;; esac",
    )
    done = host.install()
    assert done.code == 0, done
    if importlib.util.find_spec("htcondor2") is None:
        assert written(host)["adapters"] == {"logtail": {"paths": [str(host.log)]}}
        assert "pip install 'outrider[htcondor]'" in done.out
    else:
        assert written(host)["adapters"] == {"htcondor": {}}


def test_a_configuration_that_is_there_is_never_touched(host: Host, commands: Commands) -> None:
    commands.put("squeue")
    commands.configured("SLURM_CONF", host.folder / "slurm.conf")
    host.configure()
    before = host.config.read_text()
    done = host.install()
    assert host.config.read_text() == before
    assert host.files() == BASE
    assert "review " not in done.out


def slurm(folder: Path) -> str:
    """Settings beside commands of a Slurm whose user is another."""
    (folder / "bin").mkdir()
    command = folder / "bin/scontrol"
    command.write_text("#!/bin/sh\necho 'SlurmctldHost = 192.0.2.8\nSlurmUser = sched(412)'\n")
    command.chmod(0o755)
    return f'\n[adapters.slurm]\ncommands = "{folder / "bin"}"\n'


RELEASE = {
    "etc/systemd/system/outrider-release.service", "etc/systemd/system/outrider-release.timer",
    *(f"etc/systemd/system/outrider-release.service.d/50-{name}.conf"
      for name in ("command", "network", "reading")),
}  # fmt: skip


def test_where_something_lasts_the_timer_is_written_that_takes_it_back(host: Host) -> None:
    settings = slurm(host.folder)
    host.configure(settings)
    host.install()
    assert host.files() == BASE | {"50-network.conf"}
    host.configure(f'{settings}order_by = "site_factor"\n')
    done = host.install()
    assert host.files() == BASE | {"50-network.conf"} | RELEASE
    assert "systemctl enable outrider outrider-release.timer outrider-twin.service" in done.out
    folder = host.root / "etc/systemd/system/outrider-release.service.d"
    runs = (folder / "50-command.conf").read_text()
    assert f"/outrider release --stale --config {host.config}\n" in runs
    assert "IPAddressAllow=192.0.2.8\n" in (folder / "50-network.conf").read_text()
    host.configure(settings)
    host.install()
    assert host.files() == BASE | {"50-network.conf"}


def test_a_helper_comes_with_its_socket_and_runs_as_the_user_who_may(host: Host) -> None:
    host.configure(f'{slurm(host.folder)}helper = "/run/site/outrider.sock"\n')
    done = host.install()
    assert "systemctl enable outrider outrider-slurm.socket outrider-twin.service" in done.out
    units = host.root / "etc/systemd/system"
    assert "SocketGroup=outrider\n" in (units / "outrider-slurm.socket").read_text()
    where = (units / "outrider-slurm.socket.d/50-socket.conf").read_text()
    assert "ListenStream=\nListenStream=/run/site/outrider.sock\n" in where
    runs = (units / "outrider-slurm.service.d/50-command.conf").read_text()
    assert f"-m outrider_adapters.slurm.acting.helper --commands {host.folder}/bin" in runs
    assert runs.endswith("--user outrider\nUser=sched\n")
    reaches = (units / "outrider-slurm.service.d/50-network.conf").read_text()
    assert "IPAddressAllow=192.0.2.8\n" in reaches

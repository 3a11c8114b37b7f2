"""All files of the service that runs a configuration, and what its administrator has to know."""

import sysconfig
from pathlib import Path
from typing import Any

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import check_config
from outrider.service.unit import files, needs
from outrider.service.unit.drop_ins import SYSTEM
from outrider.service.unit.files import DROP_INS, SYSUSERS, UNIT, service_files
from outrider.service.unit.installed import Reading

NETWORK, READING = DROP_INS / "50-network.conf", DROP_INS / "50-reading.conf"
TWIN = {SYSTEM / "outrider-twin.service", SYSTEM / "outrider-twin.service.d/50-command.conf"}
COMMAND, SECRETS = DROP_INS / "50-command.conf", DROP_INS / "50-secrets.conf"
CREDENTIALS = "$CREDENTIALS_DIRECTORY"


class Host:
    """A host in a folder: what is stored of it, and what may be read there."""

    def __init__(self, folder: Path) -> None:
        self.config, self.log = folder / "outrider.toml", folder / "EventLog"
        self.store, self.settings = folder / "credstore", folder / "etc"
        self.unit = folder / "lib" / "outrider.service"
        for place in (self.store, self.settings, self.unit.parent):
            place.mkdir()
        self.closed: set[str] = set()
        self.hidden: set[str] = set()

    def reading_of(self, paths: list[str], _: int | None = None) -> Reading:
        """Replace the real function, which reads the groups of this machine."""
        hidden = [path for path in paths if path in self.hidden]
        return Reading([], hidden, [(p, "it is closed") for p in paths if p in self.closed])

    def of(self, **tables: Any) -> tuple[dict[Path, str], list[str]]:
        """Return the texts that are to be installed, and the notes."""
        adapters = {"pool": {"type": "logtail", "paths": [str(self.log)]}}
        found = service_files(check_config({"adapters": adapters} | tables, str(self.config)))
        return {file.path: file.text for file in found.files if file.text}, found.notes


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A folder used as a host's root."""
    host = Host(tmp_path)
    monkeypatch.setattr(files, "_STORE", host.store)
    monkeypatch.setattr(files, "_SETTINGS", host.settings)
    monkeypatch.setattr(files, "_PACKAGED", (tmp_path / "none", host.unit.parent))
    monkeypatch.setattr(files, "reading_of", host.reading_of)
    return host


def mqtt(password: str) -> dict[str, str]:
    return {"host": "127.0.0.1", "site": "t", "username": "u", "password_file": password}


def test_the_unit_is_the_shipped_one_and_none_is_written_beside_a_package(
    host: Host, repository: Path
) -> None:
    texts, notes = host.of()
    assert texts[UNIT] == (repository / "systemd/outrider.service").read_text()
    assert notes == []
    host.unit.write_text("")
    texts, notes = host.of()
    assert UNIT not in texts
    assert notes == [f"{host.unit} exists already: no unit is written"]


def test_no_drop_in_is_written_that_says_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, _ = host.of()
    assert texts.keys() == {UNIT, SYSUSERS, COMMAND} | TWIN
    own = Path(sysconfig.get_path("scripts")) / "outrider", host.config
    monkeypatch.setattr(files, "_OWN_COMMAND", own)
    texts, _ = host.of(mqtt={"host": "192.0.2.9", "site": "t"})
    assert texts.keys() == {UNIT, SYSUSERS, NETWORK} | TWIN


def test_the_command_is_this_outrider_with_this_configuration(host: Host) -> None:
    texts, _ = host.of()
    command = Path(sysconfig.get_path("scripts")) / "outrider"
    assert f"\nExecStart=\nExecStart={command} run --config {host.config}\n" in texts[COMMAND]


def test_groups_that_may_look_and_command_are_made_and_the_first_is_the_services(
    host: Host,
) -> None:
    texts, _ = host.of(socket_group="lookers", admin_group="operators")
    assert texts[SYSUSERS].endswith("g lookers -\ng operators -\n")
    assert "SupplementaryGroups=lookers\n" in texts[READING]
    assert "operators" not in texts[READING]


def test_what_the_unit_hides_is_bound_and_what_stays_closed_is_a_note(host: Host) -> None:
    host.hidden = {str(host.log)}
    texts, notes = host.of()
    assert f"BindReadOnlyPaths=-{host.log}\n" in texts[READING]
    assert notes == []
    host.closed = {str(host.log)}
    assert host.of()[1] == [f"{host.log}: the service may not read it: it is closed"]


def test_a_credential_is_taken_from_where_it_is(host: Host) -> None:
    asked = {"token_file": f"{CREDENTIALS}/http-token"}
    texts, [note] = host.of(**asked)
    assert (
        note
        == f"the credential http-token does not exist yet: put it into {host.store / 'http-token'}"
    )
    assert SECRETS not in texts, "the shipped unit looks there"
    (host.settings / "http-token").write_text("")
    texts, notes = host.of(**asked)
    assert f"LoadCredential=http-token:{host.settings / 'http-token'}\n" in texts[SECRETS]
    assert notes == []
    (host.store / "http-token").write_text("")
    texts, notes = host.of(**asked)
    assert SECRETS not in texts
    assert notes == []


def test_a_credential_of_another_name_is_looked_for_in_the_store_by_a_line_of_its_own(
    host: Host,
) -> None:
    place = host.store / "broker"
    texts, [note] = host.of(mqtt=mqtt(f"{CREDENTIALS}/broker"))
    assert f"LoadCredential=broker:{place}\n" in texts[SECRETS]
    assert note == f"the credential broker does not exist yet: put it into {place}"


def test_only_a_secret_that_is_closed_to_the_service_is_handed_to_it(
    host: Host, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret")
    assert SECRETS not in host.of(mqtt=mqtt(str(secret)))[0]
    host.closed = {str(secret)}
    texts, [note] = host.of(mqtt=mqtt(str(secret)))
    assert f"LoadCredential=password:{secret}\n" in texts[SECRETS]
    assert note.startswith(
        f"the service may not read {secret}; systemd passes it as a credential: use "
    )
    secret.unlink()
    assert SECRETS not in host.of(mqtt=mqtt(str(secret)))[0], "there is nothing to hand over"


def test_folders_of_tokens_are_handed_over_where_they_are_closed(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_one, closed, hidden = (tmp_path / name for name in ("open", "closed", "hidden"))
    for folder in (open_one, closed, hidden):
        folder.mkdir()
        (folder / "token").write_text("")
    host.closed, host.hidden = {str(closed / "token")}, {str(hidden)}
    told = needs.needs_of(check_config({"adapters": {"simulated": {}}}, str(host.config)))
    folders = {str(open_one): "_A", str(closed): "_B", str(hidden): "_C"}
    monkeypatch.setattr(files, "needs_of", lambda _: told._replace(token_folders=folders))
    assert host.of()[0][SECRETS].splitlines()[1:] == [
        "[Service]", f"LoadCredential=tokens-0:{closed}", f"LoadCredential=tokens-1:{hidden}",
        "Environment=_B=%d", "Environment=_C=%d",
    ]  # fmt: skip


def test_an_outrider_that_pip_did_not_install_has_no_service(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(ConfigurationError, match="no such command for"):
        host.of()


def test_the_command_of_a_package_is_its_link_to_this_outrider(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    link = tmp_path / "usr-bin-outrider"
    link.symlink_to(Path(sysconfig.get_path("scripts")) / "outrider")
    monkeypatch.setattr(files, "_OWN_COMMAND", (link, host.config))
    assert COMMAND not in host.of()[0]

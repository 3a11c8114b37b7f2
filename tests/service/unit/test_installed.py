"""A unit and its drop-ins, as systemd merges them."""

from pathlib import Path
from typing import Any

import pytest

from outrider.cli.doctor.checks import check_unit
from outrider.cli.doctor.sources import check_memory
from outrider.engine.ingest.bounded_names import NameLimits
from outrider.service.config.loaded import check_config
from outrider.service.unit import needs
from outrider.service.unit.drop_ins import network_text, reading_text, tmp_text
from outrider.service.unit.installed import MEMORY_MAX, installed_unit, jobs_within
from outrider.service.unit.needs import Peer, nameservers, resolve

CONFIG = Path("/etc/outrider/outrider.toml")


@pytest.fixture
def root(repository: Path, tmp_path: Path) -> Path:
    """A host with the shipped unit, and the one that asks the twin enabled."""
    folder = tmp_path / "etc/systemd/system"
    (folder / "outrider.service.wants").mkdir(parents=True)
    (folder / "outrider.service.wants/outrider-twin.service").symlink_to("../outrider-twin.service")
    (folder / "outrider.service").write_text((repository / "systemd/outrider.service").read_text())
    return tmp_path


def add(root: Path, name: str, text: str, place: str = "etc/systemd/system") -> None:
    folder = root / place / "outrider.service.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_without_a_unit_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert installed_unit(tmp_path) is None


def test_the_shipped_unit_reaches_this_host_alone(root: Path) -> None:
    unit = installed_unit(root)
    assert unit is not None
    assert (unit.config, unit.allowed, unit.denies) == (CONFIG, ["localhost"], True)


def test_drop_ins_add_and_take_back_in_the_order_of_their_names(root: Path) -> None:
    add(root, "b.conf", "[Service]\nIPAddressAllow=192.0.2.0/24 198.51.100.7\n")
    add(root, "c.conf", "[Service]\nExecStart=\nExecStart=/x run --config '/srv/my site.toml'\n")
    unit = installed_unit(root)
    assert unit is not None
    assert unit.allowed == ["localhost", "192.0.2.0/24", "198.51.100.7"]
    assert unit.config == Path("/srv/my site.toml")
    add(root, "d.conf", "[Service]\nIPAddressAllow=\n# IPAddressAllow=any\nIPAddressDeny=\n")
    unit = installed_unit(root)
    assert unit is not None
    assert (unit.allowed, unit.denies) == ([], False)


def test_of_a_command_that_cannot_be_read_the_configuration_is_not_known(root: Path) -> None:
    for command in ("/x run --config '/srv/it.toml", "/x run --config", "/x run"):
        add(root, "c.conf", f"[Service]\nExecStart=\nExecStart={command}\n")
        unit = installed_unit(root)
        assert unit is not None
        assert unit.config is None


def test_what_is_denied_is_read_word_by_word(root: Path) -> None:
    add(root, "d.conf", "[Service]\nIPAddressDeny=\nIPAddressDeny=any 192.0.2.7\n")
    unit = installed_unit(root)
    assert unit is not None
    assert unit.denies


def test_a_drop_in_of_the_administrator_hides_one_of_its_name_that_was_shipped(
    root: Path,
) -> None:
    add(root, "network.conf", "[Service]\nIPAddressAllow=any\n", "usr/lib/systemd/system")
    add(root, "network.conf", "[Service]\nIPAddressAllow=192.0.2.7\n")
    unit = installed_unit(root)
    assert unit is not None
    assert unit.allowed == ["localhost", "192.0.2.7"]


def test_the_doctor_finds_a_broker_that_the_unit_keeps_away(root: Path) -> None:
    mqtt = {"host": "192.0.2.9", "site": "test"}
    loaded = check_config({"adapters": {"simulated": {}}, "mqtt": mqtt}, str(CONFIG))
    [check] = check_unit(loaded, root)
    assert check.state == "fail"
    assert "blocks MQTT broker 192.0.2.9 (192.0.2.9)" in check.found
    assert "outrider.service.d/50-network.conf" in check.remedy
    add(root, "mine.conf", "[Service]\nIPAddressAllow=192.0.2.0/28\n")
    [check] = check_unit(loaded, root)
    assert check.state == "ok"


def test_a_unit_that_runs_another_configuration_says_nothing_of_this_one(root: Path) -> None:
    loaded = check_config({"adapters": {"simulated": {}}}, "/tmp/other.toml")
    assert list(check_unit(loaded, root)) == []


def test_an_address_is_allowed_once_and_told_for_what(tmp_path: Path) -> None:
    peers = [
        Peer("cm.example.org", "HTCondor's collector", ("192.0.2.7", "2001:db8::7")),
        Peer("192.0.2.7", "access point ap1", ("192.0.2.7",)),
    ]
    lines = network_text(peers).splitlines()
    assert lines[lines.index("[Service]") :] == [
        "[Service]",
        "# HTCondor's collector: cm.example.org",
        "IPAddressAllow=192.0.2.7",
        "IPAddressAllow=2001:db8::7",
    ]


def test_every_address_is_allowed_while_a_host_is_unknown_and_the_file_says_why() -> None:
    lines = network_text([Peer("cm", "collector", ("192.0.2.7",))], "cm:\n no answer").splitlines()
    assert lines[-2:] == ["[Service]", "IPAddressAllow=any"]
    assert "cm:  no answer" in lines[1]


def test_roots_home_can_be_entered_where_something_in_it_is_read() -> None:
    lines = reading_text([], ["/root/venv"], {}).splitlines()
    assert "TemporaryFileSystem=/root:ro,mode=0755" in lines
    assert "TemporaryFileSystem" not in reading_text([], ["/home/pool/log"], {})


def test_the_doctor_finds_a_tmp_of_its_own_where_the_pool_needs_the_hosts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = check_config({"adapters": {"simulated": {}}}, str(CONFIG))
    wants = needs.needs_of(loaded)._replace(shared_tmp="FS authentication.")
    monkeypatch.setattr(needs, "needs_of", lambda _: wants)
    add(root, "closed.conf", "[Service]\nDynamicUser=yes\nPrivateTmp=yes\n")
    [check] = check_unit(loaded, root)
    assert check.state == "fail"
    assert "has a /tmp of its own. FS authentication." in check.found
    add(root, "open.conf", tmp_text("outrider", wants.shared_tmp))
    [check] = check_unit(loaded, root)
    assert check.state == "ok"


def test_homes_are_empty_and_not_closed_where_something_in_them_is_read() -> None:
    text = reading_text(["condor"], ["/home/pool/log", "/tmp/x"], {"CONDOR_CONFIG": "/etc/c 1"})
    assert text.splitlines()[1:] == [
        "[Service]",
        "SupplementaryGroups=condor",
        "# Empty homes, with only the paths bound below.",
        "ProtectHome=tmpfs",
        "BindReadOnlyPaths=-/home/pool/log",
        "BindReadOnlyPaths=-/tmp/x",
        'Environment="CONDOR_CONFIG=/etc/c 1"',
    ]
    assert "ProtectHome" not in reading_text([], ["/tmp/x"], {})


def test_names_are_looked_up_and_one_that_nobody_knows_says_so(tmp_path: Path) -> None:
    assert "127.0.0.1" in resolve("localhost")
    with pytest.raises(OSError, match=r"no\.such\.host\.invalid: the name is not known"):
        resolve("no.such.host.invalid")
    file = tmp_path / "resolv.conf"
    file.write_text(
        "nameserver\nnameserver 127.0.0.53\nnameserver 192.0.2.53 # x\nnameserver fe80::1%eth0\n"
    )
    assert nameservers(file) == ("192.0.2.53", "fe80::1")
    assert nameservers(tmp_path / "none") == ()


def test_the_doctor_asks_for_the_timer_where_something_lasts(root: Path) -> None:
    slurm = {"order_by": "nice", "commands": str(root / "nowhere")}
    loaded = check_config({"adapters": {"slurm": slurm}}, str(CONFIG))
    found = {check.found: check for check in check_unit(loaded, root)}
    check = found["outrider-release.timer is not enabled, and this configuration needs it"]
    assert check.state == "warn"
    assert check.remedy.endswith("then systemctl enable --now outrider-release.timer")
    wants = root / "etc/systemd/system/timers.target.wants"
    wants.mkdir()
    (wants / "outrider-release.timer").symlink_to("../outrider-release.timer")
    assert [check.state for check in check_unit(loaded, root)] == ["ok"]


def test_the_doctor_misses_the_unit_that_asks_the_twin_unless_it_is_never_asked(
    root: Path,
) -> None:
    (root / "etc/systemd/system/outrider.service.wants/outrider-twin.service").unlink()
    adapters: dict[str, Any] = {"adapters": {"simulated": {}}}
    first, *_ = check_unit(check_config(adapters, str(CONFIG)), root)
    assert first.found == "outrider-twin.service is not enabled, and this configuration needs it"
    never = check_config(adapters | {"twin": {"every_s": 0}}, str(CONFIG))
    assert [check.state for check in check_unit(never, root)] == ["ok"]


def test_the_doctor_compares_the_memory_limit_with_the_queue(root: Path) -> None:
    [shipped] = check_memory({"jobs": {"queued": 190_000}}, root)
    assert shipped.state == "ok"
    add(root, "mine.conf", "[Service]\nMemoryMax=512M\n")
    [check] = check_memory({"jobs": {"queued": 190_000, "running": 10_000}}, root)
    assert check.state == "warn"
    assert "MemoryMax of 512 MiB leaves room for some 189," in check.found
    assert "200,000 are here, and up to 200,000 are followed" in check.found
    [check] = check_memory({"jobs": {"queued": 9_000}}, root)
    assert check.state == "ok"
    [check] = check_memory(None, root)
    assert check.state == "warn"
    add(root, "mine.conf", "[Service]\nMemoryMax=infinity\n")
    assert list(check_memory(None, root)) == []


def test_the_shipped_unit_has_the_limit_that_the_bounds_need(repository: Path) -> None:
    unit = (repository / "systemd" / "outrider.service").read_text()
    assert f"\nMemoryMax={MEMORY_MAX >> 20}M\n" in unit
    assert jobs_within(MEMORY_MAX) > 2 * NameLimits().job

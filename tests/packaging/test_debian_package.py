"""The Debian package: what its tree and control files say, and a life on a clean Debian."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from outrider.service.config.loaded import load_config
from outrider.service.unit.files import SYSUSERS, shipped_unit
from tests.packaging.conftest import RootOf
from tests.packaging.first_steps import FIRST_STEPS
from tools.debian_package import HOME, QUICK, SOURCE, dependencies, make, needed_glibc

SCRIPTS = ("postinst", "prerm", "postrm")


def test_it_needs_the_python_and_the_glibc_that_its_wheels_were_made_for() -> None:
    wheels = [
        Path("click-8.5.1-py3-none-any.whl"),
        Path("yarl-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"),
        Path("numpy-2-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"),
    ]
    assert [needed_glibc([wheel]) for wheel in wheels] == [0, 17, 27]
    assert dependencies("3.11", wheels).startswith(
        "python3 (>= 3.11), python3 (<< 3.12), libc6 (>= 2.27)"
    )


def test_its_configuration_is_in_shadow() -> None:
    loaded = load_config(SOURCE / "outrider.toml")
    assert loaded.config.mode == "shadow"
    assert loaded.config.adapters


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_maintainer_script_is_plain_sh_and_ends_at_a_failure(script: str) -> None:
    file = SOURCE / "debian" / script
    text = file.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -e\n" in text
    for shell in filter(shutil.which, ("dash", "sh")):
        assert subprocess.run([shell, "-n", file], check=False).returncode == 0


def test_a_purge_takes_every_unit_that_is_shipped_and_every_file_of_install_service(
    repository: Path,
) -> None:
    text = (SOURCE / "debian/postrm").read_text(encoding="utf-8")
    for unit in (repository / "systemd").glob("outrider*"):
        if unit.is_file() and "[Install]" in unit.read_text(encoding="utf-8"):
            assert f"*.wants/{unit.name}" in text, unit.name
    assert f" {SYSUSERS}" in text


@pytest.fixture(scope="session")
def package(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package, made of the folder of wheels."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here")
    return make(wheels, tmp_path_factory.mktemp("deb"), packed=QUICK)


PRESENT = """
find / -xdev \\( -path /proc -o -path /dev -o -path /tmp -o -path /var/lib/dpkg \\
    -o -path /media -o -path /root \\) -prune -o -print | sort
"""


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_a_life_on_a_clean_debian_from_install_to_purge(root_of: RootOf, package: Path) -> None:
    """Installed, looked at, run, used, removed, purged: with nothing but python3 beside it."""
    root = root_of("python3")
    root.takes(package, f"/media/{package.name}")
    before = root.runs(PRESENT)

    said = root.runs(f"dpkg -i /media/{package.name}", within_s=900)
    assert "not started" in said
    # Such a root holds no documentation; everything else is as dpkg noted it.
    assert root.runs("dpkg --verify outrider | grep -v /usr/share/doc || true") == ""
    done = root.runs(
        "export PYTHON=python3\n"
        + FIRST_STEPS
        + "outrider check-config /etc/outrider/outrider.toml\n"
        + "outrider install-service\n",
        within_s=600,
    )
    assert "the demo answers" in done
    assert "/usr/lib/systemd/system/outrider.service is there already" in done
    assert "outrider.service.d/50-command.conf" not in done, (
        "the command of the package is that of its unit"
    )
    unit = root.folder / "usr/lib/systemd/system/outrider.service"
    assert unit.read_text(encoding="utf-8") == shipped_unit()
    helper = (unit.parent / "outrider-slurm.service").read_text(encoding="utf-8")
    assert f"ExecStart=/{HOME}/bin/python -m" in helper
    # Imported by root, modules leave nothing new: they were compiled at installation.
    compiled = "find /usr/lib/outrider -name '*.pyc' | wc -l"
    many = int(root.runs(compiled))
    root.runs("outrider --version; outrider plugins > /dev/null")
    assert many == int(root.runs(compiled)) > 1000

    root.runs("mkdir -p /var/lib/private/outrider; touch /var/lib/private/outrider/journal.sqlite")
    root.runs("echo '# mine' >> /etc/outrider/outrider.toml; dpkg -r outrider")
    assert not (root.folder / HOME).exists()
    assert not (root.folder / "usr/bin/outrider").is_symlink()
    kept = (root.folder / "etc/outrider/outrider.toml").read_text(encoding="utf-8")
    assert kept.endswith("# mine\n")
    assert (root.folder / "var/lib/private/outrider/journal.sqlite").exists()

    root.runs(f"dpkg -i /media/{package.name}", within_s=900)
    kept = (root.folder / "etc/outrider/outrider.toml").read_text(encoding="utf-8")
    assert kept.endswith("# mine\n"), "a configuration that was changed stays"
    assert "outrider 0" in root.runs("outrider --version")
    root.runs("dpkg -P outrider")
    after = root.runs(PRESENT)
    allowed = re.compile(r"^/(etc/systemd|etc/sysusers\.d|var/lib/private|run|var/cache|var/log)")
    left = {*after.splitlines()} - {*before.splitlines()}
    assert {one for one in left if "outrider" in one} == set()
    assert [one for one in sorted(left) if not allowed.match(one)] == []
    assert "outrider" not in (root.folder / "var/lib/dpkg/status").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_where_systemd_is_its_user_and_groups_come_and_go(root_of: RootOf, package: Path) -> None:
    root = root_of("python3", "systemd")
    root.takes(package, f"/media/{package.name}")
    asked = "getent passwd outrider; getent group outrider outrider-admin"
    root.runs(f"dpkg -i /media/{package.name}\n{asked}", within_s=900)
    root.runs("systemctl enable outrider.service outrider-release.timer\n")
    wanted = root.folder / "etc/systemd/system/multi-user.target.wants/outrider.service"
    assert wanted.is_symlink()
    root.runs("dpkg -P outrider")
    assert not wanted.is_symlink()
    for line in asked.replace("outrider outrider-admin", "outrider").split("; "):
        assert root.tries(line).returncode != 0, line


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_lintian_finds_no_error_that_is_not_meant(root_of: RootOf, package: Path) -> None:
    root = root_of("lintian")
    root.takes(package, f"/media/{package.name}")
    said = root.runs(
        f"lintian --allow-root --fail-on none --tag-display-limit 0 /media/{package.name}",
        within_s=1800,
    )
    errors = [line for line in said.splitlines() if line.startswith("E: ")]
    assert errors, "it no longer finds what is meant"
    assert [line for line in errors if line.split()[2] not in MEANT] == []


MEANT = {
    "bogus-mail-host", "bogus-mail-host-in-debian-changelog",  # without DEBEMAIL
    "custom-library-search-path", "embedded-library", "library-not-linked-against-libc",
    "privacy-breach-logo", "unstripped-binary-or-object",
}  # fmt: skip
"""Errors that follow from what the package is: a virtual environment of others' wheels."""

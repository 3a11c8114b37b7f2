"""Files of the service: written repeatedly, but never over a file that an admin changed."""

from pathlib import Path

import pytest

from outrider.service.unit.files import UnitFile, Written, is_ours, marked, write

NAME = Path("/etc/systemd/system/outrider.service.d/50-network.conf")


def wrote(root: Path, text: str, *, dry_run: bool = False) -> str | None:
    done = write(UnitFile(NAME, text), root, dry_run=dry_run)
    return None if done is None else done.did


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a unit file is written."""
    return tmp_path / NAME.relative_to("/")


def test_it_is_written_left_and_replaced_as_what_it_says_changes(
    tmp_path: Path, path: Path
) -> None:
    assert wrote(tmp_path, "[Service]\n") == "written"
    assert path.read_text().endswith("\n[Service]\n")
    assert path.stat().st_mode & 0o777 == 0o644
    assert wrote(tmp_path, "[Service]\n") == "unchanged"
    assert wrote(tmp_path, "[Service]\nIPAddressAllow=192.0.2.7\n") == "replaced"
    assert "192.0.2.7" in path.read_text()
    assert wrote(tmp_path, "") == "removed"
    assert not path.exists()
    assert wrote(tmp_path, "") is None


def test_one_that_somebody_changed_stays_and_the_new_one_is_beside_it(
    tmp_path: Path, path: Path
) -> None:
    wrote(tmp_path, "[Service]\n")
    mine = path.read_text() + "IPAddressAllow=198.51.100.0/24\n"
    path.write_text(mine)
    done = write(UnitFile(NAME, "[Service]\nIPAddressAllow=192.0.2.7\n"), tmp_path)
    beside = path.with_name("50-network.conf.new")
    assert done == Written(beside, "beside", f"{path} was changed by hand, and is kept")
    assert path.read_text() == mine
    assert "192.0.2.7" in beside.read_text()
    assert wrote(tmp_path, "") == "kept"
    assert path.read_text() == mine


def test_one_that_was_copied_by_hand_counts_as_ours_where_it_says_the_same(
    tmp_path: Path, path: Path
) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\n")
    assert wrote(tmp_path, "[Service]\n") == "replaced"
    path.write_text("[Service]\n# mine\n")
    assert wrote(tmp_path, "[Service]\n") == "beside"


def test_a_dry_run_writes_nothing(tmp_path: Path, path: Path) -> None:
    assert wrote(tmp_path, "[Service]\n", dry_run=True) == "written"
    assert list(tmp_path.iterdir()) == []
    wrote(tmp_path, "[Service]\n")
    assert wrote(tmp_path, "", dry_run=True) == "removed"
    assert path.exists()


def test_the_mark_tells_every_change() -> None:
    text = marked("[Service]\nA=1\n")
    assert is_ours(text)
    for changed in (text + "\n", text.replace("A=1", "A=2"), text.partition("\n")[2], ""):
        assert not is_ours(changed)

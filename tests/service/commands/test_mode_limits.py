"""The effective mode: the lower of the configured mode and the limit."""

from pathlib import Path
from typing import Any

import pytest

from outrider.model.modes import MODES
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.core.mode_limit import (
    BY_COMMAND,
    BY_GUARD,
    LIMIT_NAME,
    ModeLimit,
    effective_config,
    in_mode,
    keep_limit,
    limit_of,
    rank,
)


def loaded_in(mode: str, **acting: Any) -> LoadedConfig:
    """Return a configuration in a mode that its adapter does not support and never executes."""
    given = {"adapters": {"simulated": {}}, "acting": acting}
    return in_mode(check_config(given, "test"), mode)


def limit_to(mode: str, why: str = "new disks") -> ModeLimit:
    return ModeLimit(mode, 1.7e9, "active", BY_COMMAND, why, 1000, "alice")


@pytest.mark.parametrize("configured", MODES)
@pytest.mark.parametrize("most", MODES)
def test_the_lower_of_both_is_in_force(tmp_path: Path, configured: str, most: str) -> None:
    keep_limit(limit_to(most), tmp_path)
    loaded, note = effective_config(loaded_in(configured), tmp_path)
    assert loaded.config.mode == min(configured, most, key=rank)
    assert (note is None) is (rank(most) >= rank(configured))


def test_the_note_says_why_and_names_nobody(tmp_path: Path) -> None:
    keep_limit(limit_to("shadow"), tmp_path)
    _, note = effective_config(loaded_in("canary"), tmp_path)
    right = 'mode "shadow" in place of "canary": by command: new disks; `outrider promote` climbs'
    assert note == right
    keep_limit(limit_to("shadow", why=""), tmp_path)
    assert effective_config(loaded_in("canary"), tmp_path)[1] == right.replace(": new disks", "")


def test_it_comes_back_from_its_file_as_it_was_and_goes(tmp_path: Path) -> None:
    assert limit_of(tmp_path) is None
    keep_limit(limit_to("observe"), tmp_path)
    assert limit_of(tmp_path) == limit_to("observe")
    keep_limit(None, tmp_path)
    keep_limit(None, tmp_path)
    assert effective_config(loaded_in("active"), tmp_path)[0].config.mode == "active"


def test_with_promote_first_the_mode_of_the_file_is_the_ceiling_alone(tmp_path: Path) -> None:
    loaded, note = effective_config(loaded_in("active", promote_first=True), tmp_path)
    assert loaded.config.mode == "shadow"
    assert note == 'mode "shadow" in place of "active": `outrider promote` climbs'
    assert effective_config(loaded_in("observe", promote_first=True), tmp_path)[1] is None
    keep_limit(limit_to("canary"), tmp_path)
    loaded, _ = effective_config(loaded_in("active", promote_first=True), tmp_path)
    assert loaded.config.mode == "canary"


@pytest.mark.parametrize(
    "text",
    ["", "{half", "[]", '{"most": "all", "at_s": 1, "was": "active", "by": "command"}', "\xff"],
)
def test_a_limit_that_cannot_be_read_lets_nothing_be_changed(tmp_path: Path, text: str) -> None:
    (tmp_path / LIMIT_NAME).write_bytes(text.encode("latin-1"))
    found = limit_of(tmp_path)
    assert found is not None
    assert (found.most, found.by) == ("shadow", BY_GUARD)
    assert "mode-limit.json cannot be read" in found.why

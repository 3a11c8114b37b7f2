"""The unit as it is installed: which configuration it runs, and whom it may reach."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_PLACES: Final = (
    "etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system",
    "usr/lib/systemd/system", "lib/systemd/system",
)  # fmt: skip
"""In the order in which systemd looks; the first unit counts, and drop-ins of all of them."""
_NAME: Final = "outrider.service"


class InstalledUnit(NamedTuple):
    """What matters of a unit and its drop-ins, as systemd merges them.

    Attributes:
        path: of the unit.
        config: the configuration that it runs; None where it is not told.
        allowed: the rules of ``IPAddressAllow=``.
        denies: whether there are any of ``IPAddressDeny=``.
    """

    path: Path
    config: Path | None
    allowed: list[str]
    denies: bool


def installed_unit(root: Path = Path("/")) -> InstalledUnit | None:
    """The unit of the daemon that is installed below a root; None: there is none to be seen."""
    path = next((p for place in _PLACES if (p := root / place / _NAME).is_file()), None)
    if path is None:
        return None
    lists: dict[str, list[str]] = {"ExecStart": [], "IPAddressAllow": [], "IPAddressDeny": []}
    for file in [path, *_drop_ins(root)]:
        for key, value in _settings(file):
            if key not in lists:
                continue
            if value:
                lists[key] += [value] if key == "ExecStart" else value.split()
            else:
                lists[key].clear()
    return InstalledUnit(
        path, _config_of(lists["ExecStart"]), lists["IPAddressAllow"], bool(lists["IPAddressDeny"])
    )


def is_enabled(unit: str, root: Path = Path("/")) -> bool:
    """Whether systemd starts a timer or a socket by itself, as ``systemctl enable`` leaves it."""
    wanting = (folder for place in _PLACES for folder in (root / place).glob("*.wants"))
    return any((folder / unit).is_symlink() for folder in wanting)


def _drop_ins(root: Path) -> list[Path]:
    """Those in force, in order: one of a name hides those of it in later places."""
    found: dict[str, Path] = {}
    for place in _PLACES:
        folder = root / place / f"{_NAME}.d"
        for file in folder.glob("*.conf") if folder.is_dir() else ():
            found.setdefault(file.name, file)
    return [found[name] for name in sorted(found)]


def _settings(file: Path) -> Iterator[tuple[str, str]]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.replace("\\\n", " ").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            yield key.strip(), value.strip()


def _config_of(commands: list[str]) -> Path | None:
    try:
        words = shlex.split(commands[-1]) if commands else []
    except ValueError:
        return None
    after = words.index("--config") + 1 if "--config" in words else len(words)
    return Path(words[after]) if after < len(words) else None

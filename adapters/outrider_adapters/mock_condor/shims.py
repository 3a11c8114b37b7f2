"""Shims for ``condor_q``, ``condor_status`` and ``condor_history`` that print from files.

For tests of programs that call HTCondor's tools. `dump` writes the state of a pool into a folder;
``python -m outrider_adapters.mock_condor.shims FOLDER`` puts three executables there that print it
as the real tools do with ``-json``. Supported options:

    -json                       (required: the only output format)
    -constraint EXPRESSION      only ads for which it is true
    -attributes A,B             only these attributes

All others are refused with exit code 1, as by a real tool.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from outrider_adapters.htcondor.pool_calls import AdType, ClassAd, ClassAdException, ExprTree
from outrider_adapters.mock_condor.ads import holds

if TYPE_CHECKING:
    from outrider_adapters.mock_condor.pool import MockPool

_FILES: Final = {
    "condor_q": "jobs.json",
    "condor_status": "slots.json",
    "condor_history": "history.json",
}
_EXPRESSION: Final = ("/Expr(", ")/")


def dump(pool: "MockPool", folder: Path) -> None:
    """Write ``jobs.json``, ``slots.json`` and ``history.json``, each atomically."""
    schedd = pool.schedd("shims")
    ads = (schedd.query(), pool.collector().query(AdType.Startd), schedd.history())
    for name, found in zip(_FILES.values(), ads, strict=True):
        fresh = folder / f"{name}.new"
        fresh.write_text(_json(ad.printJson() for ad in found), encoding="utf-8")
        fresh.replace(folder / name)


def write_shims(folder: Path) -> None:
    """Write the three executables into the folder."""
    for tool in _FILES:
        command = shlex.join([sys.executable, "-m", __spec__.name, str(folder), tool])
        path = folder / tool
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        path.chmod(0o755)


def answer(folder: Path, tool: str, words: list[str]) -> str:
    """Return the output of a tool for these arguments.

    Raises:
        ValueError: unsupported arguments, or a constraint that does not parse.
        OSError: no state was dumped.
    """
    parser = argparse.ArgumentParser(prog=tool, exit_on_error=False, add_help=False)
    parser.add_argument("-json", action="store_true")
    parser.add_argument("-constraint", default="true")
    parser.add_argument("-attributes", default="")
    try:
        given, unknown = parser.parse_known_args(words)
        condition = ExprTree(given.constraint)
    except (argparse.ArgumentError, ClassAdException) as error:
        raise ValueError(f"{tool}: {' '.join(words)}: {error}") from error
    if unknown or not given.json:
        raise ValueError(f"{tool}: {unknown[0] if unknown else 'without -json'}: not understood")
    wanted = {name.strip().lower() for name in given.attributes.split(",") if name.strip()}
    facts = json.loads((folder / _FILES[tool]).read_text(encoding="utf-8") or "[]")
    return _json(
        json.dumps({key: ad[key] for key in ad if not wanted or key.lower() in wanted}, indent=2)
        for ad in facts
        if holds(condition, _ad(ad))
    )


def _json(ads: Iterable[str]) -> str:
    """Return ads in brackets, separated by lines with a comma, as the real tools print them."""
    body = "\n,\n".join(ad.strip() for ad in ads)
    return f"[\n{body}\n]\n" if body else "[\n]\n"


def _ad(facts: dict[str, Any]) -> ClassAd:
    opening, closing = _EXPRESSION
    return ClassAd(
        {
            name: ExprTree(value[len(opening) : -len(closing)])
            if isinstance(value, str) and value.startswith(opening) and value.endswith(closing)
            else value
            for name, value in facts.items()
        }
    )


def main(words: list[str]) -> int:
    """FOLDER: write the executables. FOLDER TOOL WORDS...: act as one of them."""
    if len(words) == 1:
        write_shims(Path(words[0]).resolve())
        return 0
    if len(words) < 2 or words[1] not in _FILES:
        sys.stderr.write(f"usage: FOLDER [{'|'.join(_FILES)} WORD...]\n")
        return 2
    folder, tool, *rest = words
    try:
        sys.stdout.write(answer(Path(folder), tool, rest))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

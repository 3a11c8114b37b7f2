"""Do the tests notice faults? ``python -m tests.mutation.run --mutants 40 --seed 3 engine acting``.

Measures once which tests run which line, then puts small faults (mutants, made by Cosmic Ray) one
after another into a copy of the tree, and asks the tests that run the line: the room's own first,
the quickest first. A mutant that no test notices either shows a missing test, or changes nothing
that anybody could see; those are listed with the reason in `equivalent.toml` beside this file.

Ends with 1 if fewer than 85 % of all non-equivalent mutants, over all rooms together, are noticed.
A mutant whose tests did not all fit within `--bound` seconds, and which none of those noticed that
did, counts as not noticed, and is told apart as *cut off*.

Needs Cosmic Ray and coverage: ``pip install -r locks/mutation.txt``.
"""

import argparse
import difflib
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.mutation.choosing import choose
from tests.mutation.coverage_map import CoverageMap
from tests.mutation.mapping import up_to_date
from tests.mutation.mutants import Mutant, mutants_of, mutated
from tests.mutation.noticing import mutant_in_place, who_notices
from tests.mutation.rooms import ROOMS, Room, tests_of
from tests.mutation.sampling import draw, listed_equivalents, wilson
from tests.suite.copied_tree import copy_tree, python_path

NOTICED_AT_LEAST: Final = 0.85


def line_of(what: str, counted: Counter[str]) -> str:
    """The figures of a room, or of all."""
    tried = counted["tried"]
    low, high = wilson(counted["noticed"], tried)
    return (
        f"{what}: {counted['noticed']} of {tried} noticed"
        f" ({counted['noticed'] / max(tried, 1):.1%}; 95 %: {low:.1%} to {high:.1%}),"
        f" {counted['cut off']} of the others cut off, {counted['equivalent']} equivalent"
    )


def enough(counted: Counter[str]) -> bool:
    """Return whether the tests notice as many as they should."""
    return counted["noticed"] >= NOTICED_AT_LEAST * counted["tried"]


def outcome(
    mutant: Mutant, room: Room, known: CoverageMap, tree: Path, folder: Path, bound_s: float
) -> list[str]:
    """Return the counts for a mutant (tried, noticed, timed out); print a survivor."""
    file = tree / mutant.file
    source = file.read_text()
    changed = mutated(mutant, source)
    if changed is None:
        return []
    started_s = time.monotonic()
    tests = known.tests_running(mutant.file, mutant.line, source)
    choice = choose(tests, known.durations_s, room.tests, bound_s)
    with mutant_in_place(file, changed):
        noticed_by = who_notices(choice, known.durations_s, tree, folder)
    took = f"{time.monotonic() - started_s:.0f} s"
    place = f"{mutant.file}:{mutant.line} {mutant.operator}"
    if noticed_by is not None:
        print(f"noticed in {took}: {place} by {noticed_by}", flush=True)  # noqa: T201
        return ["tried", "noticed"]
    asked = len(choice.first) + len(choice.then)
    print(f"NOT NOTICED in {took}: {place} by {asked} tests, {choice.cut_off} cut off")  # noqa: T201
    change = difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=2)
    print("\n".join(list(change)[2:]), flush=True)  # noqa: T201
    return ["tried", "cut off"] if choice.cut_off else ["tried"]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(r.name for r in ROOMS)}; or all")
    parser.add_argument("--mutants", type=int, default=20, help="drawn of each room")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--bound", type=float, default=30.0, help="seconds of tests for a mutant")
    parser.add_argument("--map", type=Path, help="file: which tests run which line")
    parser.add_argument("--only", default="", help="mutants of files with this in their path")
    given = parser.parse_args()
    if unknown := set(given.rooms) - {room.name for room in ROOMS}:
        parser.error(f"no room {', '.join(unknown)}: there are {', '.join(r.name for r in ROOMS)}")
    rooms = tuple(room for room in ROOMS if not given.rooms or room.name in given.rooms)
    equivalents = listed_equivalents()
    with tempfile.TemporaryDirectory(prefix="m") as name:
        folder = Path(name)
        tree = copy_tree(folder / "tree")
        os.environ["PYTHONPATH"] = python_path(tree)
        (measured := folder / "c").mkdir()
        codes = [room.code for room in ROOMS]
        known = up_to_date(tree, codes, tests_of(rooms), measured, given.map)
        print(f"{len(known.durations_s)} tests in {sum(known.durations_s.values()):.0f} s")  # noqa: T201
        for test in known.not_passed:
            print(f"not asked, for it fails or skips without a mutant: {test}")  # noqa: T201
        total: Counter[str] = Counter()
        for room in rooms:
            counted: Counter[str] = Counter()
            mutants = (m for m in mutants_of(tree, room.code) if given.only in m.file)
            for mutant in draw(mutants, given.mutants, f"{given.seed} {room.code}"):
                if any(one.fits(mutant) for one in equivalents):
                    counted["equivalent"] += 1
                    continue
                counted.update(outcome(mutant, room, known, tree, folder, given.bound))
            print(line_of(room.code, counted), flush=True)  # noqa: T201
            total += counted
        print(line_of("all rooms", total), flush=True)  # noqa: T201
    return int(not enough(total))


if __name__ == "__main__":
    raise SystemExit(main())

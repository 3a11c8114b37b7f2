"""Do the tests notice faults? ``python -m tests.mutation.run --mutants 20 --seed 3 engine ledger``.

Puts small faults (mutants, made by Cosmic Ray) one after another into a copy of the tree and runs
the tests of their room. A mutant that no test notices either shows a missing test, or changes
nothing that anybody could see; those are listed with the reason in ``equivalent.toml`` beside this
file. Needs ``pip install cosmic-ray``.
"""

import argparse
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

TREE: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE))

from tests.mutation.rooms import ROOMS, Room  # noqa: E402 - found by the line before

NOTICED_AT_LEAST: Final = 0.85
ROOTS: Final = ("daemon", "adapters", "policies", "lab", ".")
MEANS_NOTHING: Final = ("_BitOr_", "NumberReplacer", "RemoveDecorator")
"""Operators left out: `|` stands in annotations, decorators are mostly of typing, and numbers are
mostly bounds in seconds and bytes, which tests must not pin down."""


class Mutant(NamedTuple):
    """A fault: which operator, where.

    Attributes:
        file: from the root.
        operator: Cosmic Ray's name.
        occurrence: which of the operator's places in the file.
        line: number of the line, from 1.
        text: the line as it was.
    """

    file: str
    operator: str
    occurrence: int
    line: int
    text: str


def mutants_of(tree: Path, room: Room) -> Iterator[Mutant]:
    """Every mutant of a room."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    names = [n for n in plugins.operator_names() if not any(no in n for no in MEANS_NOTHING)]
    kinds = {name: plugins.get_operator(name) for name in names}
    for path in sorted((tree / room.code).rglob("*.py")):
        lines = path.read_text().splitlines()
        nodes = list(ast_nodes(get_ast_from_path(path)))
        for name, kind in kinds.items():
            if kind.arguments():
                continue
            operator = kind()
            places = [place for node in nodes for place in operator.mutation_positions(node)]
            for occurrence, ((line, _), _) in enumerate(places):
                text = lines[line - 1].strip()
                yield Mutant(str(path.relative_to(tree)), name, occurrence, line, text)


def notice(tree: Path, room: Room, mutant: Mutant) -> tuple[bool, str]:
    """Whether a test fails with this mutant; and what it changed, as a diff."""
    from cosmic_ray.mutating import mutate_and_test
    from cosmic_ray.work_item import MutationSpec, TestOutcome

    spec = MutationSpec(
        module_path=tree / mutant.file, operator_name=mutant.operator,
        occurrence=mutant.occurrence, start_pos=(mutant.line, 0), end_pos=(mutant.line, 1),
    )  # fmt: skip
    result = mutate_and_test([spec], shlex.join(test_command(room)), room.within_s)
    return result.test_outcome == TestOutcome.KILLED, result.diff or ""


def test_command(room: Room) -> list[str]:
    """Runs a room's tests until one fails."""
    return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *room.tests]


def is_equivalent(mutant: Mutant, listed: list[dict[str, str]]) -> bool:
    """Whether it is known to change nothing that anybody could see."""
    return any(
        (one["file"], one["operator"], one["line"]) == (mutant.file, mutant.operator, mutant.text)
        for one in listed
    )


def copy_of_the_tree(folder: Path) -> Path:
    """The files under version control, somewhere else: mutants are written into them."""
    copy = folder / "tree"
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TREE, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, names):
        if (TREE / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, copy / name)
    return copy


def main() -> int:
    """Returns the exit code: 1 if tests fail without a mutant, or notice too few."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="last part of the folder; none: every room")
    parser.add_argument("--mutants", type=int, default=20, help="drawn of each room")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    given = parser.parse_args()
    listed = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text())["mutant"]
    noticed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_the_tree(Path(folder))
        os.chdir(tree)
        os.environ["PYTHONPATH"] = os.pathsep.join(str(tree / root) for root in ROOTS)
        for room in ROOMS:
            if given.rooms and Path(room.code).name not in given.rooms:
                continue
            if subprocess.run(test_command(room), check=False).returncode:
                print(f"{room.code}: its tests fail without a mutant")  # noqa: T201
                return 1
            known = [m for m in mutants_of(tree, room) if not is_equivalent(m, listed)]
            chance = random.Random(f"{given.seed} {room.code}")
            for mutant in chance.sample(known, min(given.mutants, len(known))):
                is_noticed, diff = notice(tree, room, mutant)
                tried += 1
                noticed += is_noticed
                if not is_noticed:
                    print(f"NOT NOTICED {mutant}\n{diff}", flush=True)  # noqa: T201
            print(f"{room.code}: {noticed} of {tried} so far", flush=True)  # noqa: T201
    return int(noticed < NOTICED_AT_LEAST * tried)


if __name__ == "__main__":
    raise SystemExit(main())

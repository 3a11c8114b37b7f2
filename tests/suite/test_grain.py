"""Modules stay few and full: one concept each, 60 to 500 lines (decision 0055)."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
ROOTS: Final = ("daemon/outrider", "adapters/outrider_adapters", "policies/outrider_policies",
                "lab/outrider_lab")  # fmt: skip
MOST_FILES: Final = 600
"""Modules of the product, packages included; lower it when there are fewer."""
MOST_LINES: Final = 500
APART: Final = {
    "outrider.api.mqtt_client": "needs an extra",
    "outrider.cli.bad_words": "imported late, so that help is quick",
    "outrider.cli.commands.jobs": "a command of its own",
    "outrider.cli.endings": "imported late, so that help is quick",
    "outrider.forecast.learned": "needs an extra",
    "outrider.service.demo.demo_broker": "needs an extra",
    "outrider_adapters.slurm.acting.helper.service": "systemd starts its user by name",
    "outrider_lab.commands.sweep_tables": "imported late, so that help is quick",
    "outrider_lab.comparison.comparison": "what `outrider.functions` names is its user",
    "outrider_lab.papers.automata.polling": "started by its name, in other processes",
}
"""Modules with one user, in their folder, that stay by themselves, and why."""


@cache
def modules() -> dict[str, Path]:
    """Every module of the product, by its dotted name; a package by that of its folder."""
    found: dict[str, Path] = {}
    for root in ROOTS:
        for file in (REPOSITORY / root).rglob("*.py"):
            parts = file.relative_to(REPOSITORY / root).with_suffix("").parts
            kept = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join([root.rpartition("/")[2], *kept])] = file
    return found


def imported_by(file: Path) -> set[str]:
    """Return the product's modules that a file imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules() else node.module)
    return found & modules().keys()


def lines_of(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n")


def alone_with_their_user() -> set[str]:
    """Modules with one user, which is in their folder and would hold them, too."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    for name, file in modules().items():
        for imported in imported_by(file) - {name}:
            users[imported].add(name)
    found: set[str] = set()
    for name, (user, *others) in ((name, sorted(of)) for name, of in users.items()):
        file, user_file = modules()[name], modules()[user]
        is_beside = file.parent == user_file.parent and not others
        is_package = "__init__.py" in (file.name, user_file.name)
        if is_beside and not is_package and lines_of(file) + lines_of(user_file) <= MOST_LINES:
            found.add(name)
    return found


def test_there_are_no_more_modules_than_there_were() -> None:
    assert len(modules()) <= MOST_FILES


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    assert [name for name, file in modules().items() if lines_of(file) > MOST_LINES] == []


def test_a_module_with_one_user_in_its_folder_is_part_of_it_or_says_why_not() -> None:
    found = alone_with_their_user()
    assert found - APART.keys() == set(), "fold these into their users, or say here why not"
    assert APART.keys() - found == set(), "take these out of the list"

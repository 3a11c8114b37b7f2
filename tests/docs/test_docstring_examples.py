"""Examples in docstrings are run: what they show is what happens."""

import doctest
import importlib
from pathlib import Path

import pytest

from outrider.model.errors import MissingPackageError

REPOSITORY = Path(__file__).resolve().parents[2]
ROOTS = ("daemon", "adapters", "policies", "lab")
MODULES = sorted(
    ".".join(path.relative_to(REPOSITORY / root).with_suffix("").parts)
    for root in ROOTS
    for path in (REPOSITORY / root).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingPackageError as error:
        pytest.skip(str(error))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0

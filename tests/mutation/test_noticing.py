"""A fault is put into a small tree, real tests are asked, and the file is as before."""

from pathlib import Path

import pytest

from tests.mutation import noticing
from tests.mutation.choosing import Choice
from tests.mutation.mutants import Mutant, mutants_of, mutated
from tests.suite.copied_tree import TREE

CODE = '''\
"""A sum of what was earned."""


def earned(hours: int | None, *, wage: int = 12) -> int:
    return (hours or 0) * wage
'''
TESTS = """\
import time
from code_of_a_site.pay import earned


def test_nobody_is_paid_for_no_hours():
    assert earned(None) == 0


def test_two_hours_are_paid_twice():
    assert earned(2) == 24


def test_ends():
    while earned(1) != 12:
        time.sleep(0.01)
"""
ZERO, TWO, ENDS = (
    f"test_pay.py::test_{name}"
    for name in ("nobody_is_paid_for_no_hours", "two_hours_are_paid_twice", "ends")
)
DURATIONS_S = {ZERO: 0.01, TWO: 0.01, ENDS: 0.01}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with code and with a test of it."""
    tree = tmp_path / "tree"
    (tree / "code_of_a_site").mkdir(parents=True)
    (tree / "code_of_a_site" / "pay.py").write_text(CODE)
    (tree / "test_pay.py").write_text(TESTS)
    (tree / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setenv("PYTHONPATH", f"{tree}:{TREE}")
    monkeypatch.setattr(noticing, "hangs_after_s", lambda _: 2.0)
    return tree


def test_a_fault_is_noticed_only_by_tests_that_assert_something_about_it(tree: Path) -> None:
    pay = tree / "code_of_a_site" / "pay.py"
    with noticing.mutant_in_place(pay, CODE.replace("* wage", "* wage * wage")):
        assert noticing.ask([ZERO], DURATIONS_S, tree, tree.parent) is None
        everybody = Choice([ZERO], [TWO], 0)
        assert noticing.who_notices(everybody, DURATIONS_S, tree, tree.parent) == TWO
    assert pay.read_text() == CODE
    assert noticing.who_notices(everybody, DURATIONS_S, tree, tree.parent) is None


def test_a_fault_that_hangs_or_stops_the_import_is_noticed(tree: Path) -> None:
    pay = tree / "code_of_a_site" / "pay.py"
    with noticing.mutant_in_place(pay, CODE.replace("* wage", "- wage")):
        assert noticing.ask([ENDS], DURATIONS_S, tree, tree.parent) == ENDS
    with noticing.mutant_in_place(pay, CODE.replace("int = 12", "int = 12 + ''")):
        said = noticing.ask([ENDS], DURATIONS_S, tree, tree.parent)
        assert said is not None
        assert "test_pay.py" in said or "exit code 2" in said


def test_a_slow_test_that_fails_once_and_not_again_is_not_believed(tree: Path) -> None:
    (tree / "test_pay.py").write_text(
        "from pathlib import Path\n\n\ndef test_ends():\n    seen = Path('seen')\n"
        "    was_there = seen.exists()\n    seen.touch()\n    assert was_there\n"
    )
    assert noticing.who_notices(Choice([ENDS], [], 0), {ENDS: 5.0}, tree, tree.parent) is None


def test_cosmic_ray_makes_the_mutants(tree: Path) -> None:
    pytest.importorskip("cosmic_ray", reason="needs `pip install -r locks/mutation.txt`")
    mutants = list(mutants_of(tree, "code_of_a_site"))
    assert {mutant.line for mutant in mutants} == {5}, "neither annotation nor default nor head"
    times = "core/ReplaceBinaryOperator_Mul_Add"
    found = Mutant("code_of_a_site/pay.py", times, 1, 5, 24, "return (hours or 0) * wage")
    assert found in mutants
    assert mutated(found, CODE) == CODE.replace(") * w", ") + w")
    walrus = "if hours := found():\n    pass\n"
    assert mutated(Mutant("a.py", "core/AddNot", 0, 1, 0, walrus), walrus) is None, "no Python"
    assert mutated(Mutant("a.py", "core/AddNot", 1, 1, 0, walrus), walrus) is None, "no such place"
    dotted = "try:\n    pass\nexcept (sqlite3.Error, OSError):\n    pass\n"
    replaced = [Mutant("a.py", "core/ExceptionReplacer", n, 3, 8, dotted) for n in range(2)]
    assert mutated(replaced[0], dotted) is None, "Cosmic Ray cannot"
    assert mutated(replaced[1], dotted) == dotted.replace("OSError", "CosmicRayTestingException")
    kinds = {mutant.operator.removeprefix("core/") for mutant in mutants}
    assert kinds >= {"ReplaceOrWithAnd", "NumberReplacer", "ReplaceBinaryOperator_Mul_Div"}

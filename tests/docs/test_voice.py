"""The lint of the language finds what it is for, and nothing in the project."""

import ast
from pathlib import Path

import pytest

from tools import prose, voice


def found(tmp_path: Path, code: str) -> list[str]:
    """Return the rules that a module breaks."""
    file = tmp_path / "module.py"
    file.write_text(code)
    return [finding.rule for finding in voice.check_code(file, "daemon/module.py")]


GOOD = '"""Cache of answers of the daemon."""\n'


def test_the_project_has_no_findings() -> None:
    assert [f"{one.file}:{one.line}: {one.rule}" for one in voice.findings()] == []


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ('"""What stood."""\n', "question word"),
        (GOOD + 'def f() -> int:\n    """How many jobs there are now."""\n', "question word"),
        (GOOD + 'class A:\n    """It joins, or leaves the site."""\n', "pronoun"),
        (GOOD + 'class A:\n    """The jobs."""\n', "fewer than"),
        (GOOD + f'def f() -> int:\n    """Return {"a long " * 10}sentence."""\n', "over 18 words"),
        (GOOD + 'def f() -> int:\n    """Return the jobs anew each time."""\n', "'anew'"),
        (GOOD + 'A = 1\n"""Of a value that is shown."""\n', "attribute"),
        (GOOD + 'E = "mode = 5: right would be a name"\n', "right would be"),
        (GOOD + 'E = f"{1} is told at once {2}"\n', "in a text"),
        (GOOD + "told = 5\n", "a name without meaning"),
        (GOOD + "def f(what_was_said: int) -> None: ...\n", "a name without meaning"),
        (GOOD + 'log.warning("lose_source", adapter="a")\n', "log event"),
        (GOOD + 'log.error("write_failed", reason=str(error))\n', "expected error="),
    ],
)
def test_each_rule_finds_its_fault(tmp_path: Path, code: str, rule: str) -> None:
    assert any(rule in one for one in found(tmp_path, code)), found(tmp_path, code)


def test_good_code_has_no_findings(tmp_path: Path) -> None:
    code = GOOD + (
        'class Cache:\n    """Answers by the name of a job."""\n\n'
        '    limit: int = 5\n    """Maximum number of answers."""\n\n'
        '    def get(self) -> None:\n        """Return the answer of a job."""\n'
        '        log.warning("adapter_down", adapter="a", error=str(1))\n'
        '        log.error("write_failed", error=str(error))\n'
    )
    ast.parse(code)
    assert found(tmp_path, code) == []


def test_pages_have_a_bound_for_words_and_sentences() -> None:
    long = "The daemon reads " + "one more file " * 12 + "now."
    rules = [rule for _, _, rule, _ in prose.page_faults(f"# A page\n\n{long}\n", "docs/a.md")]
    assert rules == ["a sentence of over 35 words"]
    semicolons = "It reads; it writes.\n\n" * 9
    assert [f[2] for f in prose.page_faults(semicolons, "docs/a.md")] == [
        "9 sentences with a semicolon"
    ]
    words = "It reads a file.\n\n" * 500
    assert [f[2] for f in prose.page_faults(words, "docs/a.md")] == [
        "2000 words on a page, over 1800"
    ]
    assert list(prose.page_faults(words, "docs/glossary.md")) == []


def test_code_and_tables_are_no_sentences() -> None:
    text = f"# Heading\n\n```sh\n{'word ' * 40}\n```\n\n| {'cell ' * 40} |\n\n- An item.\n"
    assert [sentence for _, sentence in prose.sentences(text)] == ["An item."]

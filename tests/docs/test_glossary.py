"""The glossary has the words that a newcomer meets, each once, with the two batch systems' own."""

import re

import pytest

from outrider.model import events
from tests.docs.pages import REPOSITORY

PAGE = (REPOSITORY / "docs/glossary.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith(("| **", "| `"))
]
SPELLED = [row[0] for row in ROWS]
"""The first column; words of the language in bold, words of settings and records as code."""
DEFINED = {word for cell in SPELLED for word in re.findall(r"\w[\w ]*", cell)}
NEEDED = """
    agreement, incumbent, shadow, canary, watermark, oracle, campus, goodput, badput, propensity,
    VO, deferral, discipline, first_fit, strict, easy, easy_sjbf, conservative, placement,
    machine group, eviction, decision epoch, policy runner, queue, scheduling pass,
    pending decision, decision log,
    event merger, normaliser, job history, machine registry, event key, shrink, availability,
    statistics, metrics exporter, views, simulation, demonstrations, behaviour policy, run spec,
    features, event mapping, deduplicator
"""


@pytest.mark.parametrize("word", [word.strip() for word in NEEDED.split(",")])
def test_every_word_that_a_newcomer_needs_is_explained(word: str) -> None:
    assert word in DEFINED


def test_every_reason_of_an_eviction_is_explained() -> None:
    assert {f"`{reason}`" for reason in events.EVICTION_REASONS} <= set(SPELLED)


def test_no_word_is_explained_twice() -> None:
    assert sorted(set(SPELLED)) == sorted(SPELLED)


def test_every_explanation_is_a_sentence_or_two() -> None:
    long = [row[0] for row in ROWS if len(re.findall(r"[.](?= |$)", row[1])) > 3]
    open_ended = [row[0] for row in ROWS if not row[1].rstrip(" |").endswith(".")]
    assert (long, open_ended) == ([], [])


def test_every_name_in_the_code_is_there() -> None:
    table = PAGE.partition("## Inside the code")[2]
    names = {
        name
        for row in table.splitlines()
        if row.startswith("| **")
        for name in re.findall(r"`([^`]+)`", row.rpartition(" | ")[2])
    }
    assert len(names) > 20
    files = [f for room in ("daemon", "adapters") for f in (REPOSITORY / room).rglob("*.py")]
    defined = {
        name
        for file in files
        for name in re.findall(r"^ *(?:class|def) (\w+)", file.read_text(), re.MULTILINE)
    } | {file.stem for file in files}
    paths = [file.as_posix() for file in files]
    missing = {
        name
        for name in names
        if not (any(f"/{name}" in path for path in paths) if "/" in name else name in defined)
    }
    assert not missing

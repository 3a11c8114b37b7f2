"""Lint of the language: plain English in docstrings, texts for people, log events and pages.

`make lint` runs `python -m tools.voice`, which prints one line for each finding. An argument (a
file or a folder) restricts it to a part. CONTRIBUTING.md ("Language") lists the rules.
"""

# ruff: noqa: SIM905 - lists of words read best as text

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools import prose

ROOT: Final = Path(__file__).resolve().parents[1]
CODE: Final = ("daemon", "adapters", "policies", "lab", "tools", "bench", "examples", "tests")
PAGE: Final = ROOT / "daemon/outrider/service/web/page"
_OWN_WORD_LISTS: Final = {"tools/voice.py", "tools/prose.py", "tests/docs/test_voice.py"}
"""Files that name the forbidden words in order to find them."""

# ---- docstrings ----------------------------------------------------------------------------------

MAX_SUMMARY_WORDS: Final = 18
MIN_SUMMARY_WORDS: Final = 4
_NOT_FIRST: Final = frozenset(
    # question words
    "what whatever whether when whenever who whoever whose where wherever how why which whichever "
    # pronouns
    "it its they their them he she his her we our you your i this that these those there here "
    # prepositions and conjunctions
    "as by of for from in into on onto at to with without until till after before since if so such "
    "though although because while once unless per about beside beyond but and or nor not".split()
)
"""Words that no summary begins with: it names the thing, or says what the function does."""

# ---- words ---------------------------------------------------------------------------------------

_FORBIDDEN: Final = (
    r"tells?|told|telling|retold|foretold|foretells?|anew|lately|of late|for ever|as yet|by chance|"
    r"befell|befallen|befalls|heeds?|heeded|mends?|mended|reckons?|reckoned|to be had|thrown away|"
    r"at once|stands for|stood|nobody|somebody|everybody|whoever|whosoever|wherever|"
    r"no more than one|holds? up|held up|carr(?:y|ies|ied|ying) out|in force|taken back|"
    r"takes? back|put right|sits? down|sat down|in doubt|beforehand|meanwhile|right would be|"
    r"what became of"
)
FORBIDDEN: Final = re.compile(rf"\b(?:{_FORBIDDEN})\b", re.IGNORECASE)
"""Words for which VOICE has a plain one: in texts for people and in summaries of docstrings."""
_NAMES: Final = frozenset(
    "told retold foretold said unsaid lately anew stood befell beside".split()
)
"""Parts of identifiers that say nothing about the value."""
_CONTRACTS: Final = re.compile(
    r"_?(\w+_)?not_said|told_apart|told_before|ranks_anew", re.IGNORECASE
)
"""Names that scripts and saved states rely on."""

# ---- log events ----------------------------------------------------------------------------------

_LOG_METHODS: Final = frozenset("debug info warning error exception critical".split())
_EVENT: Final = re.compile(
    r"[a-z0-9]+(_[a-z0-9]+)*_("
    r"\w+ed|lost|kept|begun|found|left|unknown|up|down|ahead|behind|unreadable|unavailable|full|"
    r"missing|inconsistent|made|rebuilt|set|taken|sent|read|put|shut|over|late|overdue|chosen|set_back|left)"
)


class Finding(NamedTuple):
    """One place that breaks a rule."""

    file: str
    line: int
    rule: str
    text: str


def _summary(docstring: str) -> str:
    """Return the first sentence of a docstring, on one line."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", paragraph)[0]


def _check_summary(kind: str, docstring: str) -> Iterator[str]:
    """Yield the rules that a docstring's first sentence breaks."""
    summary = _summary(docstring)
    words = summary.split()
    first = re.sub(r"[^a-z]", "", words[0].lower()) if words else ""
    if first in _NOT_FIRST:
        yield f"a {kind} docstring begins with a question word, a pronoun or a preposition"
    if kind != "attribute" and len(words) < MIN_SUMMARY_WORDS:
        yield f"a {kind} docstring of fewer than {MIN_SUMMARY_WORDS} words"
    if len(words) > MAX_SUMMARY_WORDS:
        yield f"a {kind} docstring's first sentence has over {MAX_SUMMARY_WORDS} words"
    if found := FORBIDDEN.search(summary):
        yield f"{found[0]!r} in a {kind} docstring's first sentence"


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Yield each docstring with the kind of thing that it describes."""
    kinds = {ast.Module: "module", ast.ClassDef: "class"}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        kind = kinds.get(type(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "function"
        for index, statement in enumerate(body):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                continue
            if not isinstance(statement.value.value, str):
                continue
            if index == 0 and kind is not None:
                yield kind, statement.value
            elif isinstance(body[index - 1], ast.Assign | ast.AnnAssign):
                yield "attribute", statement.value


def _texts(tree: ast.Module, skipped: set[int]) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string of two words or more that is no docstring."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            inside.update(id(part) for part in parts)
            yield node.lineno, "{}".join(str(part.value) for part in parts)
    seen = skipped | inside
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in seen and " " in text:
                yield node.lineno, text


def _identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each name that a module gives to a variable, an argument, a function or a class."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def _log_calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
        if node.func.attr in _LOG_METHODS and name.strip("_") in {"log", "logger"}:
            yield node


def _check_log_call(call: ast.Call) -> Iterator[str]:
    """Yield the rules that a log call breaks: the event's form, and where its cause stands."""
    event = call.args[0] if call.args else None
    if isinstance(event, ast.Constant) and not _EVENT.fullmatch(str(event.value)):
        yield f"log event {event.value!r}: expected noun_pastparticiple or noun_failed"
    for keyword in call.keywords:
        names = {node.id for node in ast.walk(keyword.value) if isinstance(node, ast.Name)}
        if keyword.arg == "reason" and names & {"error", "exception", "err", "exc"}:
            yield "an exception under reason=: expected error="


def check_code(file: Path, name: str) -> Iterator[Finding]:
    """Yield what is wrong in one Python file; `name` is its path for people."""
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    docstrings = list(_docstrings(tree))
    for kind, constant in docstrings:
        for rule in _check_summary(kind, str(constant.value)):
            yield Finding(name, constant.lineno, rule, _summary(str(constant.value)))
    if name.startswith("tests/"):
        return
    for line, text in _texts(tree, {id(constant) for _kind, constant in docstrings}):
        if found := FORBIDDEN.search(text):
            yield Finding(name, line, f"{found[0]!r} in a text", text)
    for line, identifier in _identifiers(tree):
        parts = set(identifier.strip("_").lower().split("_"))
        if _NAMES & parts and not _CONTRACTS.fullmatch(identifier):
            yield Finding(name, line, "a name without meaning", identifier)
    for call in _log_calls(tree):
        for rule in _check_log_call(call):
            yield Finding(name, call.lineno, rule, ast.unparse(call))


def check_page(file: Path, name: str) -> Iterator[Finding]:
    """Yield the forbidden words in one file of the daemon's page."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if found := FORBIDDEN.search(line):
            yield Finding(name, number, f"{found[0]!r} on the page", line.strip())
        if 'replaceAll("_"' in line:
            yield Finding(name, number, "a code shown raw: expected its label", line.strip())


def findings(root: Path = ROOT) -> Iterator[Finding]:
    """Yield everything that is wrong below a folder of the project."""
    for top in CODE:
        for file in sorted((root / top).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if name not in _OWN_WORD_LISTS:
                yield from check_code(file, name)
    for file in sorted((root / PAGE.relative_to(ROOT)).iterdir()):
        if file.suffix in {".js", ".html"} and "uplot" not in file.name.lower():
            yield from check_page(file, file.relative_to(root).as_posix())
    for fault in prose.faults(root):
        yield Finding(*fault)


def main(arguments: Sequence[str]) -> int:
    """Print the findings below the given paths, else all; return the exit code."""
    parts = [Path(path).resolve().relative_to(ROOT).as_posix() for path in arguments]
    found = [
        finding
        for finding in findings()
        if not parts or any(finding.file == p or finding.file.startswith(f"{p}/") for p in parts)
    ]
    for finding in found:
        print(f"{finding.file}:{finding.line}: {finding.rule}: {finding.text[:160]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

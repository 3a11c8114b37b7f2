"""The reference page of what a policy sees and answers, made from docstrings and annotations."""

import inspect
import re
import textwrap
import typing
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import (
    Choice,
    Decides,
    Groups,
    Job,
    JobSpec,
    Learns,
    Listens,
    Move,
    Orders,
    Outcome,
    Plans,
    Policy,
    Prediction,
    Predicts,
    Queue,
    Ranks,
    SiteView,
    WindowPolicy,
)
from outrider.api.capabilities import SeesQueue
from tools.reference.events_section import events_section

_HEAD = """\
# The policy API

<!-- Made by `make docs` from the docstrings of outrider.api and outrider.model. -->

What a policy is given, what it may be asked and what it answers. Times are seconds of event time
(Unix time on a live site), durations seconds, power watts; the unit stands in the name (`_s`,
`_w`). How to begin: [CONTRIBUTING](../../CONTRIBUTING.md).

"""
_SECTION: Final = re.compile(
    r"^(?:Attributes|Class variables):\n(?P<body>(?:(?: {4}.*)?\n?)+)", re.MULTILINE
)
_ENTRY: Final = re.compile(r"^ {4}(?P<names>[\w, ]+): (?P<text>.*(?:\n {8}.*)*)", re.MULTILINE)

RECORDS: Final = (Job, JobSpec, Outcome, Choice, Move, Prediction)
"""Plain objects, shown by their attributes."""
VIEWS: Final = (SiteView, Queue)
"""Protocols, shown by their properties and methods."""
BASES: Final = (
    Policy,
    Orders,
    Groups,
    SeesQueue,
    Ranks,
    Plans,
    Listens,
    Learns,
    Predicts,
    WindowPolicy,
)
"""What a policy derives from, shown by what it may define."""


_SNAPSHOTS: Final = ("save", "restore", "count_cpus")
"""Methods of records that are the engine's business."""


class Row(NamedTuple):
    """One line of a table."""

    name: str
    kind: str
    text: str


def policy_api_page() -> str:
    """The page in Markdown: bases, views, records."""
    parts = [_HEAD, "## What a policy may define\n\n"]
    parts += [_section(kind, [*_attributes(kind), *_members(kind)]) for kind in BASES]
    parts += [_section(Decides, list(_attributes(Decides)))]
    parts += ["## What it sees\n\n"]
    parts += [_section(kind, list(_members(kind))) for kind in VIEWS]
    parts += ["## What it is told and answers\n\n"]
    parts += [_section(kind, [*_attributes(kind), *_members(kind)]) for kind in RECORDS]
    return "".join(parts).rstrip() + "\n" + events_section()


def fields_of(kind: type[Any]) -> list[str]:
    """The attributes that a class really has, by slots or fields; as the page must list them."""
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    slots = getattr(kind, "__slots__", ()) or getattr(kind, "_fields", ())
    return sorted(slots)


def _section(kind: type[Any], rows: list[Row]) -> str:
    lines = [f"### `{kind.__name__}`\n\n{_prose(kind)}\n\n"]
    if rows:
        lines.append("| name | type | what it is |\n|---|---|---|\n")
        lines += [f"| `{row.name}` | {_cell(row.kind)} | {row.text} |\n" for row in rows]
        lines.append("\n")
    return "".join(lines)


def _prose(kind: type[Any]) -> str:
    """The docstring's first paragraph, on one line."""
    return _flat(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0])


def _attributes(kind: type[Any]) -> Iterator[Row]:
    """What the docstring tells of attributes, with their declared types."""
    found = _SECTION.search(inspect.cleandoc(kind.__doc__ or "") + "\n")
    types = _types_of(kind)
    for entry in _ENTRY.finditer(found["body"] if found else ""):
        for name in entry["names"].split(", "):
            yield Row(name, types.get(name, ""), _flat(entry["text"]))
    yield from _documented_below(kind, types)


def _documented_below(kind: type[Any], types: dict[str, str]) -> Iterator[Row]:
    """Attributes whose sentence stands below their assignment in the class's own source."""
    source = textwrap.dedent(inspect.getsource(kind))
    pattern = re.compile(r'^    (\w+): [^\n]+ = [^\n]+\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
    for name, text in pattern.findall(source):
        yield Row(name, types.get(name, ""), _flat(text))


def _types_of(kind: type[Any]) -> dict[str, str]:
    """Types by attribute: annotations, else those of the arguments, else the initial value's."""
    types = {name: _type(hint) for name, hint in inspect.get_annotations(kind).items()}
    if "__init__" in vars(kind) and not types:
        source = inspect.getsource(kind.__init__)
        arguments = inspect.get_annotations(kind.__init__)
        for name, hint, value in re.findall(r"self\.(\w+)(?:: ([^=\n]+?))? = (.+)", source):
            given = arguments.get(value)
            types[name] = hint or (_type(given) if given is not None else _literal(value))
    return types


def _literal(value: str) -> str:
    if value in ("True", "False"):
        return "bool"
    if re.fullmatch(r"-?\d+", value) or value == "QUEUED" or value.endswith(".cpus"):
        return "int"
    return "float" if re.fullmatch(r"-?\d+\.\d+", value) else ""


def _members(kind: type[Any]) -> Iterator[Row]:
    """Public properties and methods of the class itself."""
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property) and member.fget is not None:
            hint = inspect.get_annotations(member.fget).get("return", "")
            yield Row(name, _type(hint), _summary(member.fget))
        elif inspect.isfunction(member) and (kind in BASES or name not in _SNAPSHOTS):
            yield Row(_signature(name, member), _returned(member), _summary(member))


def _signature(name: str, function: Any) -> str:
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return f"{name}({', '.join(names)})"


def _returned(function: Any) -> str:
    return _type(inspect.get_annotations(function).get("return", ""))


def _summary(function: Any) -> str:
    return _flat(inspect.cleandoc(function.__doc__ or "").split("\nArgs:")[0].split("\nRaises:")[0])


def _type(hint: Any) -> str:
    if isinstance(hint, str):
        return hint
    if hint is None or hint is type(None):
        return "None"
    if typing.get_origin(hint) is typing.ClassVar:
        return _type(typing.get_args(hint)[0])
    told = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    told = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", told)
    return re.sub(r"ndarray\[.+, dtype\[(\w+?)_?\]\]", r"array of \1", told)  # as numpy says it


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")

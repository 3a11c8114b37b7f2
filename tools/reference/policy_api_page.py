"""Reference page of the policy API, generated from docstrings and annotations."""

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

The inputs, methods and results of a policy. Times are seconds of event time (Unix time on a live
site), durations seconds, power watts; names end with their unit (`_s`, `_w`). How to begin:
[CONTRIBUTING](../../CONTRIBUTING.md).

"""
_SECTION: Final = re.compile(
    r"^(?:Attributes|Class variables):\n(?P<body>(?:(?: {4}.*)?\n?)+)", re.MULTILINE
)
_ENTRY: Final = re.compile(r"^ {4}(?P<names>[\w, ]+): (?P<text>.*(?:\n {8}.*)*)", re.MULTILINE)

RECORDS: Final = (Job, JobSpec, Outcome, Choice, Move, Prediction)
"""Plain objects, listed with their attributes."""
VIEWS: Final = (SiteView, Queue)
"""Protocols, listed with their properties and methods."""
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
"""Base classes of policies, listed with the members that a policy may define."""


_SNAPSHOTS: Final = ("save", "restore", "count_cpus")
"""Methods of records that only the engine uses."""


class Row(NamedTuple):
    """One line of a table."""

    name: str
    kind: str
    text: str


def policy_api_page() -> str:
    """Return the page in Markdown: bases, views, records."""
    parts = [_HEAD, "## What a policy may define\n\n"]
    parts += [_section(kind, [*_attributes(kind), *_members(kind)]) for kind in BASES]
    parts += [_section(Decides, list(_attributes(Decides)))]
    parts += ["## What it sees\n\n"]
    parts += [_section(kind, list(_members(kind))) for kind in VIEWS]
    parts += ["## Its inputs and answers\n\n"]
    parts += [_section(kind, [*_attributes(kind), *_members(kind)]) for kind in RECORDS]
    return "".join(parts).rstrip() + "\n" + events_section()


def fields_of(kind: type[Any]) -> list[str]:
    """Return the attributes of a class, from slots or fields, which the page must list."""
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    slots = getattr(kind, "__slots__", ()) or getattr(kind, "_fields", ())
    return sorted(slots)


def _section(kind: type[Any], rows: list[Row]) -> str:
    lines = [f"### `{kind.__name__}`\n\n{_prose(kind)}\n\n"]
    if rows:
        lines.append("| name | type | meaning |\n|---|---|---|\n")
        lines += [f"| `{row.name}` | {_cell(row.kind)} | {row.text} |\n" for row in rows]
        lines.append("\n")
    return "".join(lines)


def _prose(kind: type[Any]) -> str:
    """Return the docstring's first paragraph, on one line."""
    return _flat(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0])


def _attributes(kind: type[Any]) -> Iterator[Row]:
    """Yield the attributes that the docstring describes, with their declared types."""
    found = _SECTION.search(inspect.cleandoc(kind.__doc__ or "") + "\n")
    types = _types_of(kind)
    for entry in _ENTRY.finditer(found["body"] if found else ""):
        for name in entry["names"].split(", "):
            yield Row(name, types.get(name, ""), _flat(entry["text"]))
    yield from _documented_below(kind, types)


def _documented_below(kind: type[Any], types: dict[str, str]) -> Iterator[Row]:
    """Yield the attributes whose docstring follows their assignment in the class's source."""
    source = textwrap.dedent(inspect.getsource(kind))
    pattern = re.compile(r'^    (\w+): [^\n]+ = [^\n]+\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
    for name, text in pattern.findall(source):
        yield Row(name, types.get(name, ""), _flat(text))


def _types_of(kind: type[Any]) -> dict[str, str]:
    """Return types by attribute: from annotations, else arguments, else the initial value."""
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
    """Yield the public properties and methods of the class itself."""
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
    name_of_type = (
        hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    )
    name_of_type = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", name_of_type)
    return re.sub(
        r"ndarray\[.+, dtype\[(\w+?)_?\]\]", r"array of \1", name_of_type
    )  # as numpy prints it


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")

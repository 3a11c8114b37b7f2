"""Reference page of the Python API, generated from signatures and docstrings."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Final

from outrider.python_api.reading import (
    JournalTables,
    generate_campus,
    generate_grid,
    ingest,
    open_journal,
    read_campus,
    read_swf,
)
from outrider.python_api.records import Fields, Records, Run
from outrider.python_api.replaying import compare, replay

_HEAD = """\
# The Python API, name by name

<!-- Made by `make docs` from the docstrings of daemon/outrider/python_api. -->

How to use it: [the Python API](../python-api.md). These names, their arguments and the fields of a
run are stable: the [changelog](../../CHANGELOG.md) announces a removal one minor version before it.
Everything else below `outrider`, except `outrider.api` for plugins, may change at any time.
"""
FUNCTIONS: Final[tuple[Callable[..., Any], ...]] = (
    read_swf, read_campus, generate_campus, generate_grid, replay, compare, ingest, open_journal,
)  # fmt: skip
CLASSES: Final = (Run, Fields, Records, JournalTables)
_SECTIONS: Final = re.compile(r"^(Args|Returns|Raises):\n", re.MULTILINE)
_ENTRY: Final = re.compile(r"^ {4}([\w, ]+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def python_api_page() -> str:
    """Return the page in Markdown: functions, then the classes that they return."""
    parts = [_HEAD, *map(_function, FUNCTIONS), "\n## What they return\n", *map(_class, CLASSES)]
    return "".join(parts)


def _function(function: Callable[..., Any]) -> str:
    name = function.__name__
    lead, parts = _parts(function)
    names = ", ".join(
        _argument(parameter) for parameter in inspect.signature(function).parameters.values()
    )
    text = f"\n## `outrider.{name}`\n\n`{name}({names})`\n\n{_flat(lead)}\n"
    arguments = _ENTRY.findall(parts.get("Args", ""))
    if arguments:
        rows = "".join(f"| `{word}` | {_flat(meaning)} |\n" for word, meaning in arguments)
        text += f"\n| argument | meaning |\n|---|---|\n{rows}"
    if "Returns" in parts:
        text += f"\nReturns: {_flat(parts['Returns'])}\n"
    if "Raises" in parts:
        raised = (
            f"- `{word}`: {_flat(meaning)}\n" for word, meaning in _ENTRY.findall(parts["Raises"])
        )
        text += "\nRaises:\n\n" + "".join(raised)
    return text


def _class(kind: type[Any]) -> str:
    lead, _ = _parts(kind)
    members = [
        (name, member)
        for name, member in vars(kind).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    ]
    rows = "".join(
        f"| `{_called(name, member)}` | {_summary(member)} |\n" for name, member in members
    )
    table = f"\n| member | meaning |\n|---|---|\n{rows}" if rows else ""
    fields = ""
    if kind is Run:
        listed = ", ".join(f"`{name}`" for name in kind.__annotations__)
        fields = f"\nFields ([definitions](definitions.md)): {listed}.\n"
    return f"\n### `{kind.__name__}`\n\n{_flat(lead)}\n{table}{fields}"


def _called(name: str, member: Any) -> str:
    if isinstance(member, property):
        return name
    parameters = list(inspect.signature(member).parameters.values())[1:]
    return f"{name}({', '.join(map(_argument, parameters))})"


def _argument(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"


def _summary(member: Any) -> str:
    lead, _ = _parts(member)
    return _flat(lead)


def _parts(member: Any) -> tuple[str, dict[str, str]]:
    """Return the docstring up to its first section, and the sections."""
    text = inspect.cleandoc(member.__doc__ or "")
    lead, *rest = _SECTIONS.split(text)
    return lead.strip(), dict(zip(rest[::2], rest[1::2], strict=True))


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")

"""Section about the kinds of events, generated from the docstring of `outrider.model.events`."""

import re

from outrider.model import events

_HEAD = """\

## Events

Log readers and adapters report events, and a policy that listens receives those of machines. They
are tuples `(time, kind, name, extra)`, the time in Unix seconds. `from outrider.api import events`
has the kinds in capitals: `events.STARTED`.

| kind | name of | extra |
|---|---|---|
"""
_RULE = re.compile(r"^=+ +=+ +=+$")


def events_section() -> str:
    """Return the section of the reference: one row for each kind."""
    lines = (events.__doc__ or "").splitlines()
    rules = [n for n, line in enumerate(lines) if _RULE.match(line)]
    if len(rules) != 3:
        raise ValueError("outrider.model.events: its docstring has no table of kinds")
    rows = [line.split(maxsplit=2) for line in lines[rules[1] + 1 : rules[2]]]
    if {row[0] for row in rows} != set(events.KIND_NAMES):
        raise ValueError("outrider.model.events: its table of kinds is not that of KIND_NAMES")
    return _HEAD + "".join(
        f"| `{kind}` | {name} | {extra.replace('|', chr(92) + '|')} |\n"
        for kind, name, extra in rows
        if kind != "tick"
    )

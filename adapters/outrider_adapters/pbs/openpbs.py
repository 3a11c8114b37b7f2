"""What OpenPBS prints as JSON, which is not always JSON.

``qstat -F json`` of some versions writes the users' environments (``Variable_List``) and numbers
with leading zeros as they are, and the whole is no JSON any more. It puts each member on a line of
its own, though, so what is wrong is left out line by line, and the users' environments are never
read at all.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

Attributes = dict[str, str]
"""Of a job or node, by name; one of several parts by both: ``Resource_List.walltime``."""

_USERS: Final = frozenset({"Variable_List", "Submit_arguments", "Job_Name", "Error_Path"})
"""Written by users, at length; none is read."""

_MEMBER: Final = re.compile(r'(?P<indent>[ \t]*)"(?P<key>[^"\\]{1,255})":[ ]?(?P<value>.*)')
_CLOSES: Final = re.compile(r"(?P<indent>[ \t]*)\},?\s*")


def entries(text: str, members: str) -> tuple[dict[str, Attributes], list[str]]:
    """The jobs or nodes of an answer, by name.

    Args:
        text: what the command printed.
        members: under which key they are: ``Jobs`` or ``nodes``.

    Returns:
        their attributes, and the names of those that cannot be read: an attribute of theirs comes
        twice, with different values.

    Raises:
        ValueError: it is no such answer at all.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        return _mended(text, members)
    found = answer.get(members) if isinstance(answer, dict) else None
    if found is None and isinstance(answer, dict) and "timestamp" in answer:
        return {}, []  # where there are none it leaves the key out
    if not isinstance(found, dict):
        raise ValueError(f"no {members!r} in what was printed")
    whole = {name: dict(_flat(ad)) for name, ad in found.items() if isinstance(ad, dict)}
    return whole, []


def _flat(ad: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in ad.items():
        if key in _USERS:
            continue
        if isinstance(value, dict):
            if not prefix:
                yield from _flat(value, f"{key}.")
        elif isinstance(value, list):
            yield prefix + key, ",".join(map(str, value))
        else:
            yield prefix + key, str(value)


def _mended(text: str, members: str) -> tuple[dict[str, Attributes], list[str]]:
    """The same, line by line."""
    found: dict[str, Attributes] = {}
    twice: set[str] = set()
    path: list[tuple[str, str]] = []  # indentation and key of each object that is open
    for line in text.split("\n"):
        if path and (closed := _CLOSES.fullmatch(line)):
            at = next((n for n, (i, _) in enumerate(path) if i == closed["indent"]), None)
            if at is not None:
                del path[at:]
            continue
        member = _MEMBER.fullmatch(line)
        keys = [key for _, key in path]
        if member is None or (keys[2:3] and keys[2] in _USERS):
            continue
        key, value = member["key"], member["value"].strip()
        if value == "{":
            path.append((member["indent"], key))
            if keys == [members]:
                if key in found:
                    twice.add(key)
                found.setdefault(key, {})
        elif keys[:1] == [members] and 2 <= len(keys) <= 3 and key not in _USERS:
            name = ".".join([*keys[2:], key])
            said = _plain(value.removesuffix(","))
            if found[keys[1]].setdefault(name, said) != said:
                twice.add(keys[1])
    if not found and f'"{members}"' not in text:
        raise ValueError(f"no {members!r} in what was printed")
    return {name: ad for name, ad in found.items() if name not in twice}, sorted(twice)


def _plain(value: str) -> str:
    try:
        read = json.loads(value)
    except ValueError:
        return value.strip('"')
    return str(read)

"""Checks of answers against their declared shapes."""

from typing import Any


def undeclared(served: Any, declared: Any, place: str = "$") -> list[str]:
    """Places of what was served and did not survive being read in its declared shape."""
    if isinstance(served, dict) and isinstance(declared, dict):
        return [
            found
            for key, value in served.items()
            for found in (
                undeclared(value, declared[key], f"{place}.{key}")
                if key in declared
                else [f"{place}.{key}"]
            )
        ]
    if isinstance(served, list) and isinstance(declared, list):
        return [
            found
            for number, pair in enumerate(zip(served, declared, strict=True))
            for found in undeclared(*pair, f"{place}[{number}]")
        ]
    return [] if served == declared else [place]


def numbers_in(node: Any) -> set[float]:
    """Return every number of a JSON document."""
    if isinstance(node, dict | list):
        parts = node.values() if isinstance(node, dict) else node
        return set().union(*(numbers_in(part) for part in parts))
    return {node} if isinstance(node, int | float) and not isinstance(node, bool) else set()

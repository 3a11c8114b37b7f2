"""Expressions of node features, as ``--constraint`` takes them."""

import re
from collections.abc import Collection
from typing import Final

_TOKEN = re.compile(r"\s*([&|()\[\],]|[^&|()\[\],*\s]+)(?:\*\d+)?")
_OPERATORS: Final = frozenset("&|,)]")
_CLOSES: Final = {"(": ")", "[": "]"}
_MOST_TOKENS: Final = 200
"""Of an expression; each bracket is a call deeper."""


def has_features(expression: str, features: Collection[str]) -> bool:
    """Whether a node with these features is among those that an expression admits.

    ``&`` and a comma stand for *and*, ``|`` for *or*; they bind alike, from left to right, as in
    Slurm. The brackets of *matching or* say how nodes are combined, not which. So do counts
    (``a*2&b*1``): with them, every node that has one of the features may be among those of a job.

    >>> has_features("intel&(ssd|nvme)", {"intel", "nvme"}), has_features("a*2&b*1", {"b"})
    (True, True)

    Raises:
        ValueError: it is no such expression.
    """
    tokens = _TOKEN.findall(expression)
    if not tokens or len(tokens) > _MOST_TOKENS or _TOKEN.sub("", expression).strip():
        raise ValueError(f'"{expression[:60]}" is no expression of features')
    if "*" in expression:
        return any(token in features for token in tokens)
    tokens.reverse()
    found = _value(tokens, features, "")
    if tokens:
        raise ValueError(f'"{expression[:60]}" closes what it has not opened')
    return found


def _value(tokens: list[str], features: Collection[str], until: str) -> bool:
    found = _one(tokens, features)
    while tokens and tokens[-1] != until:
        operator = tokens.pop()
        other = _one(tokens, features)
        if operator in ("&", ","):
            found = found and other
        elif operator == "|":
            found = found or other
        else:
            raise ValueError(f'"{operator[:60]}" where & or | would be right')
    return found


def _one(tokens: list[str], features: Collection[str]) -> bool:
    if not tokens:
        raise ValueError("an expression of features that ends too early")
    token = tokens.pop()
    if token in _CLOSES:
        found = _value(tokens, features, _CLOSES[token])
        if not tokens:
            raise ValueError(f'"{token}" is not closed')
        tokens.pop()
        return found
    if token in _OPERATORS:
        raise ValueError(f'"{token}" where a feature would be right')
    return token in features

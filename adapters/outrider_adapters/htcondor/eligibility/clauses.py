"""Split ClassAd expressions into clauses that must all hold, with the attributes they read."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.pool_calls import ClassAd, ClassAdException, ExprTree

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN: Final = re.compile(rf"{_STRING.pattern}|'(?:[^'\\]|\\.)*'|&&|\|\||.", re.DOTALL)
_MAX_DEPTH: Final = 20
"""Maximum nesting of attributes and parentheses that is searched for clauses."""

_ATTRIBUTE: Final = re.compile(r"(?:MY\.)?([A-Za-z_]\w*)", re.IGNORECASE)
_SCOPES: Final = ("target.", "my.")
_SCOPED: Final = re.compile(
    rf"{_STRING.pattern}|(?<![.\w])(?:TARGET\s*\.\s*(?P<other>[A-Z_]\w*)|(?P<own>MY\s*\.\s*[A-Z_]\w*))",
    re.IGNORECASE | re.DOTALL,
)

_CLOCK: Final = re.compile(
    r"\b(?:(?:time|random)\s*\(|currenttime\b|mycurrenttime\b|clockmin\b|clockday\b|servertime\b)",
    re.IGNORECASE,
)
"""Parts of an expression that depend on the time or are random."""

_PLAIN: Final = frozenset({bool, int, float, str})

NEVER: Final = "false"
"""Clause that no machine meets."""

_EMPTY: Final = ClassAd()


class Clause(NamedTuple):
    """A condition on the other side's ad.

    Attributes:
        text: text of the clause in HTCondor's form.
        tree: the same from the other side's view, to evaluate in its ad alone: that takes a
            fifteenth of the time of a match.
        reads: the attributes of the other side that it reads, in small letters, sorted.
    """

    text: str
    tree: Any
    reads: tuple[str, ...]

    def holds(self, ad: Any) -> bool:
        """Return whether it is true of an ad; undefined and error are not true, as in a match."""
        try:
            return self.tree.eval(ad) is True
        except ClassAdException:  # nested too deeply
            return False


def clause(text: str) -> Clause:
    """Parse the clause of a text; references to its own side become undefined."""
    tree = ExprTree(_SCOPED.sub(_of_the_other_side, text))
    return Clause(text, tree, tuple(sorted(names_in(_EMPTY.externalRefs(tree)))))


def _of_the_other_side(found: re.Match[str]) -> str:
    if found["other"]:
        return found["other"]
    return "undefined" if found["own"] else found[0]


def names_in(references: Any) -> set[str]:
    """Return the attributes that references such as ``TARGET.Memory`` name, in small letters."""
    names = set()
    for reference in references:
        name = reference.lower()
        for scope in _SCOPES:
            name = name.removeprefix(scope)
        names.add(name.partition(".")[0])
    return names - {""}


def referred_to(ad: Any, name: str) -> set[str]:
    """Return all attributes, of both sides, that an attribute depends on, including itself."""
    if name not in ad:
        return {name.lower()}
    tree = ad.lookup(name)
    return {name.lower()} | names_in(ad.externalRefs(tree)) | names_in(ad.internalRefs(tree))


def demands(ad: Any, name: str) -> Iterator[str]:
    """Yield the clauses of an attribute that the other side has to meet.

    Clauses that hold for every other side are left out, and so are those that read the clock, since
    their value depends on the time. One that never holds is returned as `NEVER`.

    Raises:
        ClassAdException: an expression is nested too deeply.
    """
    if name not in ad:
        return
    tree = ad.lookup(name)
    own = evaluated(ad, ad.internalRefs(tree))
    for part in _opened(ad, str(tree), 0):
        if _CLOCK.search(_STRING.sub("", part)):
            continue
        rest = own.flatten(ExprTree(part))
        if isinstance(rest, ExprTree):
            yield from conjuncts(str(rest))
        elif rest is not True:
            yield NEVER


def evaluated(ad: Any, names: Iterable[str]) -> Any:
    """Return attributes of an ad, evaluated if they depend on no other ad.

    Otherwise an expression such as ``RequestMemory`` would stay a name without a value.
    """
    own = ClassAd()
    for name in names:
        if name in ad:
            value = ad.eval(name)
            own[name] = value if type(value) in _PLAIN else ad.lookup(name)
    return own


def _opened(ad: Any, text: str, depth: int) -> Iterator[str]:
    """Yield the conjuncts of a text, with attributes replaced by their expressions."""
    for part in conjuncts(text):
        named = _ATTRIBUTE.fullmatch(part)
        inner = ad.get(named[1]) if named and depth < _MAX_DEPTH else None
        if isinstance(inner, ExprTree):
            yield from _opened(ad, str(inner), depth + 1)
        else:
            yield part


def conjuncts(text: str) -> list[str]:
    """Return the clauses of an expression that must all be true, out of their parentheses.

    >>> conjuncts('((Arch == "X86_64") && (a || b)) && c')
    ['Arch == "X86_64"', 'a || b', 'c']
    """
    found = [text.strip()]
    for _ in range(_MAX_DEPTH):
        parts = [part for one in found for part in _split(one)]
        if parts == found:
            break
        found = parts
    return found


def _split(text: str) -> list[str]:
    """Split one level of conjuncts, or remove the parentheses around the whole."""
    depth, starts, encloses = 0, [0], text.startswith("(")
    for token in _TOKEN.finditer(text):
        what = token[0]
        if what in "([{":
            depth += 1
        elif what in ")]}":
            depth -= 1
            encloses &= depth > 0 or token.end() == len(text)
        elif depth == 0 and what in ("||", "?"):
            return [text]  # `&&` binds closer: nothing to split
        elif depth == 0 and what == "&&":
            starts.append(token.end())
    if len(starts) == 1:
        return [text[1:-1].strip()] if encloses and depth == 0 else [text]
    ends = [start - 2 for start in starts[1:]] + [len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]

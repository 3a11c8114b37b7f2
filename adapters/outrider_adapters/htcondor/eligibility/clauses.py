"""ClassAd expressions taken apart: the clauses that must all hold, and what each one reads."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.pool_calls import ClassAd, ClassAdException, ExprTree

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN: Final = re.compile(rf"{_STRING.pattern}|'(?:[^'\\]|\\.)*'|&&|\|\||.", re.DOTALL)
_DEEPEST: Final = 20
"""How many attributes and parentheses deep clauses are looked for."""

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
"""What an expression reads of the hour, and of chance."""

_PLAIN: Final = frozenset({bool, int, float, str})

NEVER: Final = "false"
"""A clause that nobody meets."""

_EMPTY: Final = ClassAd()


class Clause(NamedTuple):
    """A condition on the other side's ad.

    Attributes:
        text: as HTCondor writes it.
        tree: the same as the other side would say it, to evaluate in its ad alone: that takes a
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
    """The clause of a text; what it still says of its own side is not defined."""
    tree = ExprTree(_SCOPED.sub(_of_the_other_side, text))
    return Clause(text, tree, tuple(sorted(names_in(_EMPTY.externalRefs(tree)))))


def _of_the_other_side(found: re.Match[str]) -> str:
    if found["other"]:
        return found["other"]
    return "undefined" if found["own"] else found[0]


def names_in(references: Any) -> set[str]:
    """The attributes that references (``TARGET.Memory``) are to, in small letters."""
    names = set()
    for reference in references:
        name = reference.lower()
        for scope in _SCOPES:
            name = name.removeprefix(scope)
        names.add(name.partition(".")[0])
    return names - {""}


def referred_to(ad: Any, name: str) -> set[str]:
    """Every attribute, of either side, that an attribute of an ad depends on, itself included."""
    if name not in ad:
        return {name.lower()}
    tree = ad.lookup(name)
    return {name.lower()} | names_in(ad.externalRefs(tree)) | names_in(ad.internalRefs(tree))


def demands(ad: Any, name: str) -> Iterator[str]:
    """What an attribute of an ad demands of the other side, clause by clause.

    Clauses that hold for everybody are left out, and so are those that read the clock: when they
    hold is a matter of the hour. One that never holds is given as `NEVER`.

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
    """These attributes of an ad, with the values of those that depend on nobody else.

    Else an expression such as ``RequestMemory`` would stay a name that says nothing by itself.
    """
    own = ClassAd()
    for name in names:
        if name in ad:
            value = ad.eval(name)
            own[name] = value if type(value) in _PLAIN else ad.lookup(name)
    return own


def _opened(ad: Any, text: str, depth: int) -> Iterator[str]:
    """The conjuncts of a text, where an attribute that is an expression stands for its own."""
    for part in conjuncts(text):
        named = _ATTRIBUTE.fullmatch(part)
        inner = ad.get(named[1]) if named and depth < _DEEPEST else None
        if isinstance(inner, ExprTree):
            yield from _opened(ad, str(inner), depth + 1)
        else:
            yield part


def conjuncts(text: str) -> list[str]:
    """The clauses of an expression that must all be true, out of their parentheses.

    >>> conjuncts('((Arch == "X86_64") && (a || b)) && c')
    ['Arch == "X86_64"', 'a || b', 'c']
    """
    found = [text.strip()]
    for _ in range(_DEEPEST):
        parts = [part for one in found for part in _split(one)]
        if parts == found:
            break
        found = parts
    return found


def _split(text: str) -> list[str]:
    """One level of conjuncts, or what is inside the parentheses around the whole."""
    depth, starts, encloses = 0, [0], text.startswith("(")
    for token in _TOKEN.finditer(text):
        what = token[0]
        if what in "([{":
            depth += 1
        elif what in ")]}":
            depth -= 1
            encloses &= depth > 0 or token.end() == len(text)
        elif depth == 0 and what in ("||", "?"):
            return [text]  # `&&` binds closer: nothing to take apart
        elif depth == 0 and what == "&&":
            starts.append(token.end())
    if len(starts) == 1:
        return [text[1:-1].strip()] if encloses and depth == 0 else [text]
    ends = [start - 2 for start in starts[1:]] + [len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]

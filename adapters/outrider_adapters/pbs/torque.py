"""What Torque prints as XML: jobs (``qstat -x``) and nodes (``pbsnodes -x``).

It has no document type and no entities; an answer that declares some is refused.
"""

from typing import Final
from xml.parsers import expat

Attributes = dict[str, str]

_DEEPEST: Final = 4
_USERS: Final = frozenset({"Variable_List", "Job_Name", "submit_args"})
"""Written by users, at length; none is read."""


def entries(text: str, element: str, name: str) -> dict[str, Attributes]:
    """The jobs or nodes of an answer, by name.

    Args:
        text: what the command printed; nothing where there are none.
        element: one of them: ``Job`` or ``Node``.
        name: the part that names it: ``Job_Id`` or ``name``.

    Raises:
        ValueError: it is no such answer.
    """
    if not text.strip():
        return {}
    reading = _Reading(element)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    parser.EntityDeclHandler = _refuse
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"no XML: {error}") from error
    return {one[name]: one for one in reading.found if name in one}


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type or an entity, which Torque never does")


class _Reading:
    """Collects the elements of one kind while they are parsed."""

    def __init__(self, element: str) -> None:
        self.found: list[Attributes] = []
        self._element = element
        self._path: list[str] = []
        self._words: list[str] = []

    def start(self, name: str, _: dict[str, str]) -> None:
        """An element begins."""
        if len(self._path) >= _DEEPEST:
            raise ValueError(f"<{name}> is nested deeper than Torque nests")
        self._path.append(name)
        self._words = []
        if len(self._path) == 2 and name == self._element:
            self.found.append({})

    def text(self, words: str) -> None:
        """Text inside of an element."""
        self._words.append(words)

    def end(self, name: str) -> None:
        """An element ends; the parts of those that are collected are attributes."""
        inner = self._path[2:]
        if self._path[1:2] == [self._element] and inner and not _USERS.intersection(inner):
            words = "".join(self._words).strip()
            if words:
                self.found[-1][".".join(inner)] = words
        self._path.pop()
        self._words = []

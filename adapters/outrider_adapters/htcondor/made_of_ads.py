"""What was made of ads that have not changed since: told apart by their text.

To write an ad out is one call of the library; to read it, attribute by attribute, costs ten times
as much. Most ads of a queue are as they were when it was read before.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from outrider_adapters.htcondor.bindings import ClassAd

MOST: Final = 100_000
MadeT = TypeVar("MadeT")


class MadeOfAds(Generic[MadeT]):
    """Remembers by an ad's text what was made of it; at least the last `most`, at most twice those.

    Args:
        make: makes it of an ad; of the same text always the same, until `clear`.
        most: how many.
    """

    def __init__(self, make: Callable[[Any], MadeT], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, MadeT] = {}
        self._before: dict[int, MadeT] = {}

    def of(self, ad: Any) -> MadeT:
        """What is made of an ad; of one that is no ClassAd of the library, each time anew."""
        if not isinstance(ad, ClassAd):
            return self._make(ad)
        text = hash(ad.printOld())
        made = self._made.get(text)
        if made is None:
            made = self._before.pop(text, None)
            if made is None:
                made = self._make(ad)
            if len(self._made) >= self._most:
                self.age()
            self._made[text] = made
        return made

    def age(self) -> None:
        """Forget at the next call what is not asked for until then."""
        self._made, self._before = {}, self._made

    def clear(self) -> None:
        """Forget everything: the same ads mean something else now."""
        self._made, self._before = {}, {}

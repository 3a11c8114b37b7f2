"""VOs that are named for a user: what must not be shown where users have pseudonyms."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from outrider.model.events import CHANGED, SUBMITTED, NamedEvent
from outrider.service.core.pseudonyms import is_named_for

MOST_PERSONAL_VOS: Final = 10_000


class PersonalVos:
    """VOs that are named for a user: ``alice``, the group of her own, or ``physics.alice``.

    Attributes:
        users: by VO, the user in its name.
        is_full: there were more than are kept; any VO may be such a one.
    """

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.is_full = False

    def note(self, events: Iterable[NamedEvent], known: Any) -> bool:
        """Look at submissions and changes of jobs; whether a VO came to these.

        Args:
            events: what came in.
            known: gives what is known of a job by its name, as `Normaliser.known_by`.
        """
        before = len(self.users)
        for _, kind, name, extra in events:
            if kind == SUBMITTED:
                self._add(extra.user, extra.vo)
            elif kind == CHANGED and ("user" in extra or "vo" in extra):
                history = known(name)
                spec = None if history is None else history.spec
                user = extra.get("user") or getattr(spec, "user", "")
                self._add(user, extra.get("vo") or getattr(spec, "vo", ""))
        return len(self.users) > before

    def _add(self, user: str, vo: str) -> None:
        if not user or vo in self.users or not is_named_for(vo, user):
            return
        if len(self.users) >= MOST_PERSONAL_VOS:
            self.is_full = True
        else:
            self.users[vo] = user

    def recall(self, users: Mapping[str, str]) -> None:
        """Go on with what was kept."""
        self.users.update(users)

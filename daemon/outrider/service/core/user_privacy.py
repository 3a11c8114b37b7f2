"""Privacy of users: pseudonyms, the index of known users, and what a client sees of names."""

import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.model.errors import LedgerError
from outrider.model.events import CHANGED, SUBMITTED, NamedEvent
from outrider.service.core.mode_limit import ModeLimit
from outrider.service.host.private_folder import read_owned
from outrider.service.shapes.values import OutsideText, UserName, VoName

# -- pseudonyms ------------------------------------------------------------------------------------
# Pseudonyms: users' names are personal data and are not needed to learn from their jobs.

KEY_NAME: Final = "pseudonym.key"
_KEY_BYTES: Final = 32
_PSEUDONYM: Final = re.compile(r"u-[0-9a-f]{10}")
_MAX_REALMS: Final = 10_000
_BORDERS: Final = r".@/\-_:"
"""Characters at which a name begins and ends in a longer one."""


class Pseudonyms:
    """Keyed, one-way pseudonyms, stable for as long as the key is kept.

    Names of different realms have different pseudonyms, so that users cannot write a dictionary of
    pseudonyms into places that they control. Docs: decision 0057.

    Args:
        key: secret bytes of this site.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._keys = {"": key}

    def of(self, name: str, realm: str = "") -> str:
        """Return the pseudonym of a user.

        Args:
            name: the user's name.
            realm: who wrote the name, and where; empty: a batch system itself, as a user's name.
        """
        encoded = name.encode(errors="surrogateescape")
        return "u-" + hmac.digest(self._key_of(realm), encoded, "sha256")[:5].hex()

    def _key_of(self, realm: str) -> bytes:
        key = self._keys.get(realm)
        if key is None:
            if len(self._keys) >= _MAX_REALMS:
                self._keys = {"": self._key}
            encoded = realm.encode(errors="surrogateescape")
            key = self._keys[realm] = hmac.digest(self._key, b"realm " + encoded, "sha256")
        return key

    def in_vo(self, vo: str, user: str, reporter: str = "") -> str:
        """Replace the user's name in a VO such as ``physics.alice`` or ``alice``."""
        return vo if is_pseudonym(user) else _as_part(user).sub(self.of(user, reporter), vo)

    def hide(self, event: NamedEvent) -> NamedEvent:
        """Return the event with its user's name replaced, also in the name of the VO."""
        time_s, kind, subject, extra = event
        if kind == SUBMITTED and extra.user:
            user = extra.user, extra.reporter
            extra = msgspec.structs.replace(
                extra, user=self.of(*user), vo=self.in_vo(extra.vo, *user)
            )
        elif kind == CHANGED and extra.get("user"):
            user = extra["user"], extra.get("reporter", "")
            vo = {"vo": self.in_vo(extra["vo"], *user)} if extra.get("vo") else {}
            extra = {**extra, "user": self.of(*user), **vo}
        return time_s, kind, subject, extra


def is_pseudonym(name: str) -> bool:
    """Return whether a name is already a pseudonym and needs no replacement."""
    return _PSEUDONYM.fullmatch(name) is not None


def is_named_for(vo: str, user: str) -> bool:
    """Return whether a VO is named for a user: ``alice``, ``physics.alice``, ``pi_Alice``."""
    return _as_part(user).search(vo) is not None


def _as_part(user: str) -> re.Pattern[str]:
    name = re.escape(user)
    return re.compile(rf"(?:^|(?<=[{_BORDERS}])){name}(?=[{_BORDERS}]|$)", re.IGNORECASE)


def load_key(path: Path) -> bytes:
    """Load the site's key, or create it at first use, readable only by the daemon.

    The file is written atomically. A truncated one is replaced by a new key.

    Raises:
        LedgerError: it can neither be read nor created.
    """
    try:
        if path.exists() and len(key := read_owned(path)) >= _KEY_BYTES:
            return key
        key = secrets.token_bytes(_KEY_BYTES)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise LedgerError(f"{path}: the key of pseudonyms cannot be created: {error}") from error
    return key


# -- known users -----------------------------------------------------------------------------------
# Index of the known users, by which their names are found in VOs and in texts.

MAX_PERSONAL_VOS: Final = 10_000
MAX_USERS: Final = 20_000
_MAX_PARTS: Final = 16
_PART: Final = re.compile(rf"[^{_BORDERS}]+")
_EDGES: Final = "".join(set(_BORDERS) - {"\\"})


class KnownUsers:
    """The users who are known, and the VOs that are named for them.

    A VO is named for a user as in ``alice``, ``physics.alice``, ``pi_alice`` or ``alice-lab``. Who
    submits jobs to it does not matter, nor which of the two became known first.

    Args:
        pseudonyms: the pseudonyms under which users are stored; None: by their names.

    Attributes:
        users: VOs that were named for a known user when a job came, each with a user in it.
        is_full: True if a limit was exceeded; then any VO may be named for a user.
    """

    def __init__(self, pseudonyms: Pseudonyms | None = None) -> None:
        self.users: dict[str, str] = {}
        self.is_full = False
        self._pseudonyms = pseudonyms
        self._seen: set[str] = set()
        self._keys: set[str] = set()
        self._spans: dict[str, tuple[tuple[int, int], ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def adopt(self, other: "KnownUsers") -> None:
        """Add the users that another index knows."""
        self.recall(other.users)
        for user in other._seen:
            self.add(user)

    def add(self, user: str) -> None:
        """Add a user; names of VOs are compared with it from now on."""
        if user in self._seen:
            return
        if len(self._seen) >= MAX_USERS:
            self.is_full = True
            return
        self._seen.add(user)
        name = user.casefold().strip(_EDGES)
        new = {name, name.partition("@")[0].strip(_EDGES)} - self._keys - {""}
        if new:
            self._keys |= new
            self._spans.clear()

    def note(self, events: Iterable[NamedEvent], known: Any) -> bool:
        """Add the users in submissions and changes of jobs; return whether a VO is named for one.

        Args:
            events: the events that arrived.
            known: returns the known job of a name, see `Normaliser.known_by`.

        Returns:
            True if any of their VOs is new in `users`.
        """
        before = len(self.users)
        for _, kind, name, extra in events:
            if kind == SUBMITTED:
                self._note(extra.user, extra.vo)
            elif kind == CHANGED and ("user" in extra or "vo" in extra):
                history = known(name)
                spec = None if history is None else history.spec
                user = extra.get("user") or getattr(spec, "user", "")
                self._note(user, extra.get("vo") or getattr(spec, "vo", ""))
        return len(self.users) > before

    def _note(self, user: str, vo: str) -> None:
        if not user:
            return
        self.add(user)
        if vo in self.users or not (spans := self.spans_in(vo)):
            return
        if len(self.users) >= MAX_PERSONAL_VOS:
            self.is_full = True
        else:
            begin, end = spans[-1]
            self.users[vo] = vo[begin:end]

    def recall(self, users: Mapping[str, str]) -> None:
        """Add the VOs that were recorded earlier, and their users."""
        self.users.update(users)
        for user in users.values():
            self.add(user)

    def spans_in(self, vo: str) -> tuple[tuple[int, int], ...]:
        """Return the beginnings and ends of users' names in the name of a VO."""
        spans = self._spans.get(vo)
        if spans is None:
            if len(self._spans) >= MAX_PERSONAL_VOS:
                self._spans.clear()
            spans = self._spans[vo] = self.find(vo)
        return spans

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the same for a word that does not come again; the longest names first."""
        parts = [found.span() for found in _PART.finditer(text)]
        if len(parts) > _MAX_PARTS:  # bounded work; such a name is not needed in clear
            return ((0, len(text)),)
        spans, first = [], 0
        while first < len(parts):
            start = parts[first][0]
            for last in range(len(parts), first, -1):
                end = parts[last - 1][1]
                if self._is_known(text[start:end]):
                    spans.append((start, end))
                    first = last
                    break
            else:
                first += 1
        return tuple(spans)

    def _is_known(self, name: str) -> bool:
        folded = name.casefold()
        if folded in self._keys:
            return True
        if self._pseudonyms is None:
            return False
        return not {self._pseudonyms.of(name), self._pseudonyms.of(folded)}.isdisjoint(self._keys)


# -- viewers ---------------------------------------------------------------------------------------
# Display of names to one client: the only place where names are turned into text.

_WORD: Final = re.compile(r"\w[\w.@/:-]*(?<![.:])")
_TEXTS: Final = ("cause", "sentence", "held_because", "batch_system_errors", "batch_system")
"""Fields of an explanation with words of the batch system, or of the user."""
_clear: Final = attrgetter("clear")
_CODES: Final = frozenset({"adapter", "code", "lever", "action", "machine"})
"""Fields in these with words that programs compare."""


class Viewer:
    """The names that one client sees: all, its own user's, or none.

    Args:
        pseudonyms: the pseudonyms of this site.
        known: the users who are known.
        shown: True if the client may see names.
        own: name of the client's own user, which it may see; empty: none.
    """

    def __init__(
        self,
        pseudonyms: Pseudonyms,
        known: KnownUsers,
        shown: bool,
        own: str = "",
    ) -> None:
        self._pseudonyms = pseudonyms
        self._known = known
        self.shown = shown
        self._own = own
        self._render: Callable[[Any], str] = _clear if shown else self._hidden
        self._hidden_ones: dict[Any, str] = {}
        self._vos: dict[tuple[str, str], str] = {}
        self._texts: dict[tuple[str, str], str] = {}

    def for_user(self, own: str) -> "Viewer":
        """Return the same display for a client that may see its own user's name and reasons."""
        return Viewer(self._pseudonyms, self._known, self.shown, own)

    # -- encoding -------------------------------------------------------------------------------

    def encode(self, answer: Any) -> bytes:
        """Return an answer as JSON, with all names in it as this client sees them."""
        return msgspec.json.encode(answer, enc_hook=self._render)

    def plain(self, answer: Any) -> Any:
        """Return an answer as plain data, with all names in it as this client sees them."""
        return msgspec.to_builtins(answer, enc_hook=self._render)

    def _hidden(self, value: Any) -> str:
        """Return one name or text for a client that does not see all; rows often share them."""
        shown = self._hidden_ones.get(value)
        if shown is None:
            shown = self._hidden_ones[value] = self._hide_one(value)
        return shown

    def _hide_one(self, value: Any) -> str:
        """Return one name or text as a client sees it that does not see all.

        Raises:
            NotImplementedError: it is neither.
        """
        kind = type(value)
        if kind is VoName:
            return self.vo(value)
        if kind is UserName:
            return self._name(value.clear, value.reporter)
        if kind is OutsideText:
            return self.text(value)
        raise NotImplementedError(f"expected a name, not {kind.__name__}")

    # -- names ----------------------------------------------------------------------------------

    def sees(self, user: str) -> bool:
        """Return whether the client may read texts about a user's jobs."""
        return self.shown or self.owns(user)

    def owns(self, user: str) -> bool:
        """Return whether a user is the client's own."""
        return bool(self._own) and user in (self._own, self._pseudonyms.of(self._own))

    def user(self, user: UserName | str) -> str:
        """Return a user's name as this client may see it."""
        if isinstance(user, str):
            user = UserName(user)
        return self._name(user.clear, user.reporter)

    def _name(self, name: str, realm: str) -> str:
        if self.sees(name) or not name or is_pseudonym(name):
            return name
        return self._pseudonyms.of(name, realm)

    def vo(self, vo: VoName | str) -> str:
        """Return a VO as this client may see it: it may contain users' names."""
        if isinstance(vo, str):
            vo = VoName(vo)
        clear = vo.clear
        if self.shown:
            return clear
        spans = self._known.spans_in(clear)
        if not spans and not self._known.is_full:
            return clear
        of = vo.of
        realm = f"vo {of}" if isinstance(of, str) else f"vo of {of.reporter} {of.clear}"
        key = clear, realm
        shown = self._vos.get(key)
        if shown is None:
            shown = self._vos[key] = self._hide(clear, spans, realm)
        return shown

    def text(self, text: OutsideText) -> str:
        """Return a text as this client may see it: without names of users but its own."""
        if self.shown or text.owner is None:
            return text.clear
        key = text.clear, text.owner
        shown = self._texts.get(key)
        if shown is None:
            shown = self._texts[key] = self._in_words(*key)
        return shown

    def _in_words(self, text: str, user: str) -> str:
        """Return a text with users' names hidden, also in names such as ``ada_1``."""
        realm = f"text {self._own}"
        if self._known.is_full:
            return self._pseudonyms.of(text, realm)
        find = self._known.find
        text = _WORD.sub(lambda found: self._hide(found[0], find(found[0]), realm), text)
        if not user:
            return text
        name = re.escape(user)
        return re.sub(rf"(?<![^\W_]){name}(?![^\W_])", self._name(user, realm), text)

    def _hide(self, text: str, spans: Sequence[tuple[int, int]], realm: str) -> str:
        """Return a text with the users' names at some places replaced, except the own name."""
        if self._known.is_full:
            return self._name(text, realm)
        for begin, end in reversed(spans):
            text = text[:begin] + self._name(text[begin:end], realm) + text[end:]
        return text

    @property
    def hides_vos(self) -> bool:
        """True if a VO may be shown under another name."""
        return not self.shown and (bool(self._known) or self._known.is_full)

    # -- commands -------------------------------------------------------------------------------

    def in_commands(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return commands, with their users' numbers and names hidden if necessary."""
        return rows if self.shown else [self._in_command(row) for row in rows]

    def limit(self, limit: ModeLimit | None) -> Mapping[str, Any] | None:
        """Return the mode limit as plain data, its user hidden if necessary."""
        if limit is None:
            return None
        row = msgspec.structs.asdict(limit)
        return row if self.shown else self._in_command(row)

    def _in_command(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if row["uid"] is None:
            return row
        return {**row, "uid": None, "user": self.user(row["user"] or str(row["uid"]))}


# -- named answers ---------------------------------------------------------------------------------
# Answers that are plain data, with the names in them marked as such.


def named_status(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the status with its VOs as names."""
    waits, fairness = answer["wait_s"], answer["fairness"]
    vos = {vo: VoName(vo) for vo in (*waits["by_vo"], *fairness["share"], *fairness["target"])}
    named = {name: _by_vo(fairness[name], vos) for name in ("share", "target")}
    return {
        **answer,
        "wait_s": {**waits, "by_vo": _by_vo(waits["by_vo"], vos)},
        "fairness": {**fairness, **named},
    }


def _by_vo(values: Mapping[str, Any], vos: Mapping[str, VoName]) -> dict[VoName, Any]:
    return {vos[vo]: value for vo, value in values.items()}


def named_explanation(answer: Mapping[str, Any], user: str) -> Mapping[str, Any]:
    """Return the explanation of a user's job with texts in which users may be named as such."""
    has_outside = answer["batch_system"] is not None or answer["held_because"] is not None
    fields = _TEXTS if has_outside else ("batch_system_errors",)
    policies = [
        {**one, **{name: OutsideText(one[name], user) for name in ("explanation", "text")}}
        for one in named_rows(answer["policies"])
    ]
    return {
        **answer,
        **{name: _texts_in(answer[name], user) for name in fields},
        "lease": _texts_in(answer["lease"], user),
        "policies": policies,
        "decisions": named_rows(answer["decisions"]),
    }


def _texts_in(value: Any, user: str) -> Any:
    """Return plain data with all texts marked as texts from outside."""
    if isinstance(value, str):
        return OutsideText(value, user)
    if isinstance(value, Mapping):
        return {k: one if k in _CODES else _texts_in(one, user) for k, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_texts_in(one, user) for one in value]
    return value


def named_rows(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return decisions, with the labels of their scores as texts: policies name VOs there."""
    return [named_row(row) for row in rows]


def named_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one decision, with the labels of its scores as texts."""
    if not row["scores"]:
        return row
    return {**row, "scores": {OutsideText(name, ""): one for name, one in row["scores"].items()}}

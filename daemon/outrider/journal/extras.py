"""The fourth part of an event as JSON text: lossless, and fast for what is common.

msgspec writes and reads nearly everything. JSON has no word for an infinite or undefined float,
and msgspec makes ``null`` of one, so a text with a ``null`` in it is written once more by the
standard library, which spells ``Infinity`` and ``NaN`` and reads them back. Strict readers stop
at these words; that is the sign to read with the standard library too.
"""

import json
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from outrider.model.events import (
    CHANGED,
    ELIGIBLE,
    EVICTED,
    HELD,
    JOINED,
    KIND_NAMES,
    POWER,
    REMOVED,
    STARTED,
    SUBMITTED,
)
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.model.resources import Resources


class _Start(NamedTuple):
    """The extra of a start as JSON has it; the slot may be missing."""

    machine: str
    cpus: int
    slot: str = ""


class _Change(TypedDict, total=False):
    """The fields of a `JobSpec` that changed."""

    user: str
    vo: str
    job_class: str
    cpus: int
    estimate_s: float | None
    eligible_s: float | None
    seen_submit: bool
    recalled: bool
    resources: Resources | None
    eligible: str


_SHAPES: Final[dict[int, Any]] = {
    SUBMITTED: JobSpec,
    JOINED: MachineSpec,
    STARTED: _Start,
    EVICTED: str,
    REMOVED: str,
    HELD: str,
    POWER: float,
    CHANGED: _Change,
    ELIGIBLE: tuple[str, ...],
}

_encode = msgspec.json.Encoder().encode
_decoders: Final[tuple[Any, ...]] = tuple(
    msgspec.json.Decoder(_SHAPES.get(kind, Any)).decode for kind in range(len(KIND_NAMES))
)


def encode_extra(kind: int, extra: Any) -> str | None:
    """The extra of an event as JSON text, or None for None.

    Args:
        kind: an event kind; it decides nothing here and everything in `decode_extra`.
        extra: what `outrider.model.events` says belongs to that kind, machines by name.

    Raises:
        TypeError: the extra is not made of plain data.
        UnicodeEncodeError: a text in it cannot be written as UTF-8 (half a surrogate pair).
    """
    if extra is None:
        return None
    return encode_json(extra)


def decode_extra(kind: int, text: str | None) -> Any:
    """The extra that `encode_extra` wrote.

    Raises:
        msgspec.MsgspecError, ValueError: the text is no JSON, or not of the kind's shape.
    """
    if text is None:
        return None
    try:
        extra = _decoders[kind](text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        extra = msgspec.convert(json.loads(text), _SHAPES.get(kind, Any))
    if kind == STARTED:
        return tuple(extra) if extra.slot else (extra.machine, extra.cpus)
    return extra


def encode_json(value: Any) -> str:
    """Plain data as JSON text; infinite and undefined floats as ``Infinity`` and ``NaN``."""
    text: str = _encode(value).decode()
    if "null" in text:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
    return text


def decode_json(text: str) -> Any:
    """What `encode_json` wrote. Raises `ValueError` if it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)
    except TypeError as error:  # a flipped bit made a number of it
        raise ValueError(f"{text!r} is no text") from error

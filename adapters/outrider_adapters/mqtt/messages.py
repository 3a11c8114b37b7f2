"""Documented messages: one JSON object for each of our topics, and reasons for refusal."""

import datetime as dt
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

MAX_PAYLOAD_BYTES: Final = 64 * 1024
MAX_WATTS: Final = 100_000.0
"""Largest accepted power; a larger value is another quantity."""

T = TypeVar("T")
_Watts = Annotated[float, Meta(ge=0, le=MAX_WATTS)]
_Time = float | Annotated[dt.datetime, Meta(tz=True)] | None


class Refused(Exception):  # noqa: N818 - a message is refused; nothing is in error
    """Raised for an invalid message.

    Attributes:
        reason: one of a closed list of words, by which it is counted.
        why: text for the person on call, without the payload, which may name people.
    """

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.why = why


class NoNews(Exception):  # noqa: N818 - no error either
    """A valid message that is no event for us, with one of a closed list of reasons."""


class OwnerMessage(msgspec.Struct, frozen=True):
    """A log-in or log-out. The user's name is never read, even if it is sent.

    Attributes:
        present: a user is logged in now.
        usable: after a log-out jobs may start immediately; else a state ``usable`` follows.
        time: when that began: Unix seconds, or ISO 8601 with a zone. None: on arrival.
    """

    present: bool
    usable: bool = True
    time: _Time = None


class StateMessage(msgspec.Struct, frozen=True):
    """New state of a machine: a word of `outrider_adapters.mqtt.event_mapping.STATES`."""

    state: str
    time: _Time = None


class PowerMessage(msgspec.Struct, frozen=True):
    """Reading of a power meter, in watts."""

    watts: float
    time: _Time = None


class MachineMessage(msgspec.Struct, frozen=True):
    """Specification of a machine (`outrider.api.MachineSpec`), usually retained."""

    cluster: Annotated[str, Meta(min_length=1, max_length=128)] = "default"
    cpus: Annotated[int, Meta(ge=1, le=65536)] = 1
    active_w: _Watts | None = None
    idle_w: _Watts | None = None
    sleep_w: _Watts | None = None


OWNER: Final = msgspec.json.Decoder(OwnerMessage)
STATE: Final = msgspec.json.Decoder(StateMessage)
POWER: Final = msgspec.json.Decoder(float | PowerMessage)
MACHINE: Final = msgspec.json.Decoder(MachineMessage)
ANYTHING: Final = msgspec.json.Decoder(Any)


def decoded(decoder: "msgspec.json.Decoder[T]", payload: bytes) -> T:
    """Decode a message's payload. Raises `Refused`: ``too_long``, ``wrong_form``, ``not_json``."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise Refused("too_long", f"{len(payload)} bytes; at most {MAX_PAYLOAD_BYTES}")
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError as error:
        raise Refused("wrong_form", str(error)) from error
    except RecursionError as error:
        raise Refused("not_json", "nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused("not_json", "not JSON in UTF-8") from error


def watts_of(value: object) -> float:
    """Return a reading in watts. Raises `Refused`: ``wrong_watts``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refused("wrong_watts", f"watts are a {type(value).__name__}, not a number")
    if not 0 <= value <= MAX_WATTS:  # also true of NaN
        raise Refused("wrong_watts", f"{value:g} W; expected 0 to {MAX_WATTS:g}")
    return float(value)

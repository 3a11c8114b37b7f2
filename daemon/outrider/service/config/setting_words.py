"""Settings in words, from their declaration: what kind of value, in which range, what for."""

from math import isinf
from typing import Any, NamedTuple, get_type_hints

import msgspec

from outrider.model.setting_kinds import kind_text, limits_text, toml_text, unwrapped
from outrider.model.settings import describe


class SettingWords(NamedTuple):
    """One setting, as people read it.

    Attributes:
        name: the key.
        kind: what sort of value: ``number``, ``text``, ``one of "observe", "shadow"``.
        limits: ``0 or more``, ``more than 0, at most 1``; empty where any value is right.
        default: the value it has where nobody sets it; None: unset.
        required: there is no default.
        description: what one would change it for.
    """

    name: str
    kind: str
    limits: str
    default: Any
    required: bool
    description: str

    @property
    def default_text(self) -> str:
        """The default as TOML writes it; empty where there is none."""
        return "" if self.default is None else toml_text(self.default)

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON types; an infinite default is the text ``inf``."""
        infinite = isinstance(self.default, float) and isinf(self.default)
        return self._asdict() | ({"default": toml_text(self.default)} if infinite else {})


def settings_of(record: type[msgspec.Struct]) -> list[SettingWords]:
    """The settings of a record, in the order of their declaration."""
    hints = get_type_hints(record, include_extras=True)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(record)}
    told = []
    for setting in describe(record):
        kind, metas = unwrapped(hints[fields[setting.name]])
        told.append(
            SettingWords(
                name=setting.name,
                kind=kind_text(kind),
                limits=limits_text(metas),
                default=None if setting.required else setting.default,
                required=setting.required,
                description=next((m.description for m in metas if m.description), ""),
            )
        )
    return told

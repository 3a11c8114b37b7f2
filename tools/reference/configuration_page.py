"""Reference page of the configuration, generated from the same declarations as the example."""

from collections.abc import Iterator
from typing import Final

import msgspec

from outrider.plugins.finding import ADAPTERS, POLICIES, load_adapter, load_policy
from outrider.service.config.declarations import ClusterSettings, Config
from outrider.service.config.optional_tables import ActingSettings, PublishSettings, TwinSettings
from outrider.service.config.reading import SettingWords, settings_of
from outrider.service.demo.example_config import plugin_names

_HEAD: Final = """\
# Configuration

One TOML file, checked completely before anything starts: an unknown key is an error that suggests
the nearest known one. `outrider check-config FILE` checks it, `outrider check-config --example`
prints an example with every setting. Names end with their unit: `_s` seconds, `_w` watts.

This page is generated from the declarations that the daemon checks against.
"""


def configuration_page() -> str:
    """Return the page, with the plugins that come with Outrider. Raises `PluginError`."""
    return "\n".join([_HEAD, *_sections()]).rstrip() + "\n"


def _sections() -> Iterator[str]:
    yield from _section("The daemon", "", Config)
    yield from _section("`[clusters.NAME]`", _doc(ClusterSettings), ClusterSettings)
    yield from _section("`[acting]`", _doc(ActingSettings), ActingSettings)
    yield from _section("`[mqtt]`", _doc(PublishSettings), PublishSettings)
    yield from _section("`[twin]`", _doc(TwinSettings), TwinSettings)
    for name in plugin_names(ADAPTERS, shipped_only=True):
        adapter = load_adapter(name)
        text = f'{_sentence(adapter.description)} `type = "{name}"`, or the label itself.'
        yield from _section(f"Adapter `{name}`", text, adapter.settings_type)
    for name in plugin_names(POLICIES, shipped_only=True):
        policy = load_policy(name)
        text = _sentence(policy.description)
        if policy.presets:
            text += f" Presets: {', '.join(f'`{preset}`' for preset in policy.presets)}."
        yield from _section(f"`[policies.{name}]`", text, policy.settings_type)


def _section(title: str, text: str, record: type[msgspec.Struct]) -> Iterator[str]:
    yield f"## {title}\n"
    if text:
        yield f"{text}\n"
    settings = settings_of(record)
    if not settings:
        yield "No settings.\n"
        return
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for setting in settings:
        yield _row(setting)
    yield ""


def _row(setting: SettingWords) -> str:
    value = ", ".join(filter(None, (setting.kind, setting.limits)))
    default = f"`{setting.default_text}`" if setting.default is not None else "unset"
    cells = (f"`{setting.name}`", value, "required" if setting.required else default,
             setting.description)  # fmt: skip
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _doc(record: type[msgspec.Struct]) -> str:
    return (record.__doc__ or "").partition("\n")[0]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."

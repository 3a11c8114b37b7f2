"""The example configuration, generated from the declarations that the daemon validates against.

Prose follows ``# ``. Settings that may be uncommented follow ``#`` alone: without every such ``#``
the text is a configuration that loads, and does the same as the defaults.
"""

import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from outrider.model.errors import MissingPackageError
from outrider.model.settings import toml_text
from outrider.plugins.finding import ADAPTERS, POLICIES, find, load_adapter, load_policy
from outrider.service.config.declarations import ClusterSettings, Config
from outrider.service.config.optional_tables import ActingSettings, PublishSettings, TwinSettings
from outrider.service.config.reading import SettingWords, settings_of

OWN_DISTRIBUTION: Final = "outrider"
_TABLES: Final = ("clusters", "acting", "mqtt", "twin", "adapters", "policies")
_WIDTH: Final = 98
_FIRST_ADAPTER: Final = "logtail"
_FIRST_POLICY: Final = "bandit"
# Values of required settings, which have no default to show: as a site with HTCondor sets them.
_WRITTEN: Final = {"paths": ["/var/log/condor/EventLog"]}


def plugin_names(group: str, shipped_only: bool) -> list[str]:
    """Return the names of a group's plugins: all, or those that come with Outrider."""
    return [
        name
        for name, point in find(group).items()
        if not shipped_only or (point.dist is not None and point.dist.name == OWN_DISTRIBUTION)
    ]


def example_toml(shipped_only: bool = False) -> str:
    """Return an example of the daemon's configuration, with every setting explained.

    Args:
        shipped_only: show all plugins that come with Outrider, and no others. Otherwise those that
            are installed; one that needs a missing package is shown without its settings.

    Raises:
        PluginError: one of the plugins cannot be loaded.
    """
    lines = [
        "# Outrider's configuration, an example: the lines that are not commented out watch an",
        "# HTCondor event log with one policy in shadow. The rest shows every setting with its",
        "# default. Names end in their unit: _s seconds, _w watts. `outrider check-config FILE`",
        "# checks a file; SIGHUP makes a running daemon read it again.",
        "",
    ]
    lines += _settings(s for s in settings_of(Config) if s.name not in _TABLES)
    lines += [
        *_prose(
            "Clusters: machines of one room or pool, one table each, under any name. A value that "
            "is not set here is unknown: without watts no energy is reported.",
        ),
        "",
        "#[clusters.library]",
        *_settings(settings_of(ClusterSettings)),
        *_prose(
            "Acting: what Outrider changes in the batch system in the modes canary and active, and "
            "for which jobs. Every change expires automatically unless it is renewed.",
        ),
        "",
        "# [acting]",
        *(_as_prose(line) for line in _settings(settings_of(ActingSettings))),
        *_prose(
            "Publishing over MQTT: mode and health, every decision and every eviction. Without "
            "this table nothing is published.",
        ),
        "",
        "# [mqtt]",
        *(_as_prose(line) for line in _settings(settings_of(PublishSettings))),
        *_prose(
            "The shadow twin: a separate process that periodically simulates the site's past under "
            "each policy.",
        ),
        "",
        "# [twin]",
        *(_as_prose(line) for line in _settings(settings_of(TwinSettings))),
        *_adapters(shipped_only),
        *_policies(shipped_only),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _adapters(shipped_only: bool) -> Iterator[str]:
    text = (
        "Adapters: the sources of events at the site, one table each. The table's name is any "
        "label; `type` names the plugin and may be left out if it equals the label."
    )
    yield from (*_prose(text), "")
    names = plugin_names(ADAPTERS, shipped_only)
    for name in sorted(names, key=lambda name: (name != _FIRST_ADAPTER, name)):
        first = name == _FIRST_ADAPTER
        try:
            adapter = load_adapter(name)
        except MissingPackageError as error:
            if shipped_only:
                raise
            yield from _prose(f"{error} Its settings are then shown here.")
            yield ""
            continue
        yield from _prose(f"{name}: {adapter.description}.")
        if adapter.own_clock:
            yield from _prose("It runs on its own clock and must be the only adapter.")
        yield f"[adapters.{name}]" if first else f"# [adapters.{name}]"
        # A site has one kind of source: the other adapters are prose, not to be uncommented.
        settings = _settings(settings_of(adapter.settings_type))
        yield from settings if first else (_as_prose(line) for line in settings)


def _policies(shipped_only: bool) -> Iterator[str]:
    text = (
        "Policies: each is a candidate whose decisions are recorded in shadow. Without any table "
        "the bandit is used. `preset` may name one of a policy's bundles of settings."
    )
    yield from (*_prose(text), "")
    names = plugin_names(POLICIES, shipped_only)
    for name in sorted(names, key=lambda name: (name != _FIRST_POLICY, name)):
        policy = load_policy(name)
        if policy.needs_oracle:
            continue  # the daemon refuses it: only replay knows the truth
        presets = f" Presets: {', '.join(policy.presets)}." if policy.presets else ""
        yield from _prose(f"{name}: {policy.description}.{presets}")
        yield f"[policies.{name}]" if name == _FIRST_POLICY else f"#[policies.{name}]"
        yield from _settings(settings_of(policy.settings_type))
        if name != _FIRST_POLICY:
            yield ""


def _settings(settings: Iterable[SettingWords]) -> Iterator[str]:
    for setting in settings:
        yield from _prose(" ".join(filter(None, (setting.description, facts(setting)))))
        yield _line(setting)
        yield ""


def _line(setting: SettingWords) -> str:
    if setting.required and setting.name in _WRITTEN:
        return f"{setting.name} = {toml_text(_WRITTEN[setting.name])}"
    if setting.default is None:
        return f"# {setting.name} ="
    return f"#{setting.name} = {setting.default_text}"


def facts(setting: SettingWords) -> str:
    """Return the kind and limits of a setting's value, in parentheses."""
    words = ", ".join(filter(None, (setting.kind, setting.limits)))
    state = "; required" if setting.required else "; unset" if setting.default is None else ""
    return f"({words}{state})"


def _prose(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]


def _as_prose(line: str) -> str:
    return f"# {line[1:]}" if line.startswith("#") and not line.startswith("# ") else line

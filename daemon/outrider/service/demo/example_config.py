"""The example configuration, made from the declarations that the daemon checks against.

Prose stands behind ``# ``, settings that may be uncommented behind ``#`` alone: what is left when
every such ``#`` is taken away is a configuration that loads, and does what the defaults do.
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
# A required setting has no default to show; what a site with HTCondor would write stands here.
_WRITTEN: Final = {"paths": ["/var/log/condor/EventLog"]}


def plugin_names(group: str, shipped_only: bool) -> list[str]:
    """Names of the plugins of a group, all or those that come with Outrider."""
    return [
        name
        for name, point in find(group).items()
        if not shipped_only or (point.dist is not None and point.dist.name == OWN_DISTRIBUTION)
    ]


def example_toml(shipped_only: bool = False) -> str:
    """An example of the daemon's configuration, with every setting explained.

    Args:
        shipped_only: all plugins that come with Outrider, and no other. Otherwise those that are
            installed; of one that needs a package that is not, the name without its settings.

    Raises:
        PluginError: one of the plugins cannot be loaded.
    """
    lines = [
        "# Outrider's configuration. This file is an example: what is not commented out watches",
        "# an HTCondor event log with one policy in shadow; the rest shows every setting with its",
        "# default. Units stand in the names: _s seconds, _w watts. `outrider check-config FILE`",
        "# checks a file; SIGHUP makes a running daemon read it again.",
        "",
    ]
    lines += _settings(s for s in settings_of(Config) if s.name not in _TABLES)
    lines += [
        *_prose(
            "Clusters: machines that sit and are used together, one table each, under a name of "
            "your own. What is not told here is not known: without watts there is no energy.",
        ),
        "",
        "#[clusters.library]",
        *_settings(settings_of(ClusterSettings)),
        *_prose(
            "Acting: what is changed in the batch system in the modes canary and active, and on "
            "which jobs. Whatever is changed lapses by itself.",
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
            "The shadow twin: the site's past simulated anew under each policy, from time to time, "
            "by a process of its own.",
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
        "Adapters: who tells what happens at the site, one table each. The table's name is a label "
        "of your own; `type` names the plugin and may be left out where it is the label."
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
            yield from _prose(f"{error} Its settings are shown here then.")
            yield ""
            continue
        yield from _prose(f"{name}: {adapter.description}.")
        if adapter.own_clock:
            yield from _prose("It runs on a clock of its own and must be the only adapter.")
        yield f"[adapters.{name}]" if first else f"# [adapters.{name}]"
        # One site has one kind of source: the others are prose, not to be uncommented beside it.
        settings = _settings(settings_of(adapter.settings_type))
        yield from settings if first else (_as_prose(line) for line in settings)


def _policies(shipped_only: bool) -> Iterator[str]:
    text = (
        "Policies: each is a candidate that says in shadow what it would do. Without any table the "
        "bandit is asked. `preset` may name one of a policy's bundles of settings."
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
    """What may be written: the kind of value and its limits, as half a sentence."""
    words = ", ".join(filter(None, (setting.kind, setting.limits)))
    state = "; required" if setting.required else "; unset" if setting.default is None else ""
    return f"({words}{state})"


def _prose(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]


def _as_prose(line: str) -> str:
    return f"# {line[1:]}" if line.startswith("#") and not line.startswith("# ") else line

"""A configuration that was read and checked whole, and what it says of the site's machines."""

import fnmatch
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from outrider.acting.gate import ACTING_MODES, CANARY
from outrider.api.estimator import RunTimeEstimator
from outrider.engine.accounting.fairness import check_targets
from outrider.model.clusters import ClusterSpec
from outrider.model.disciplines import Discipline
from outrider.model.errors import ConfigurationError, PluginError
from outrider.model.localtime import day_second, time_zone
from outrider.model.machines import MachineSpec
from outrider.model.opening import OpeningHours
from outrider.model.places import LineOf, Place, no_lines
from outrider.model.setting_kinds import toml_text
from outrider.model.settings import build
from outrider.model.toml_lines import TomlLines
from outrider.model.utility import TimeUtility
from outrider.model.wrong_settings import wrong_value
from outrider.plugins.finding import ADAPTERS, POLICIES, find, load
from outrider.plugins.making import make_estimator, make_policy, make_utilities
from outrider.service.config.acting_settings import ActingSettings
from outrider.service.config.declarations import (
    ClusterSettings,
    Config,
    acting_of,
    adapter_of,
    listen_address,
    policies_of,
)
from outrider.service.config.discipline import DisciplineChoice, Proposal, choose_discipline
from outrider.service.config.mqtt_settings import PublishSettings
from outrider.service.config.twin_settings import TwinSettings

_TABLES: Mapping[str, type[msgspec.Struct]] = {
    "acting": ActingSettings,
    "mqtt": PublishSettings,
    "twin": TwinSettings,
}


class LoadedConfig(msgspec.Struct, frozen=True):
    """A configuration that has been checked whole, and where it came from."""

    config: Config
    source: str
    broken: dict[str, str] = {}
    """Plugins that it names and that cannot be loaded or made, by table, and why: the rest can
    start."""
    line_of: LineOf = no_lines
    """The line of the file on which keys stand."""

    @property
    def place(self) -> Place:
        """The file as a whole, as errors name it."""
        return Place(self.source, (), self.line_of)

    def cluster_specs(self) -> list[ClusterSpec]:
        """The declared clusters."""
        return [
            ClusterSpec(name, OpeningHours(settings.open))
            for name, settings in self.config.clusters.items()
        ]

    def reboot_day_s(self) -> float | None:
        """Second of the day of the nightly reboot, or None. Raises `ValueError`."""
        return None if self.config.reboot is None else day_second(self.config.reboot)

    def utilities(self) -> dict[str, TimeUtility]:
        """Time utility functions by job class. Raises `ConfigurationError`, `PluginError`."""
        return make_utilities(self.config.utilities, self.place.inside("utilities"))

    def discipline(self) -> DisciplineChoice:
        """The queue discipline in force, and why."""
        proposals = {}
        for label, settings in self.config.adapters.items():
            if f"adapters.{label}" in self.broken:
                continue
            kind, _ = adapter_of(label, settings)
            proposed: Discipline | None = load(ADAPTERS, kind).discipline
            if proposed is not None:
                proposals[label] = Proposal(kind, proposed)
        return choose_discipline(self.config.discipline, proposals)

    def make_estimator(self) -> RunTimeEstimator | None:
        """The run time estimator, or None. Raises `PluginError`."""
        name = self.config.estimator
        if name is None:
            return None
        try:
            return make_estimator(name, self.config.seed, self.place)
        except PluginError as error:
            raise type(error)(f'{self.place.of(["estimator"])}: "estimator": {error}') from error

    def describe_machine(self, name: str) -> MachineSpec:
        """What is known of a machine that is only known because a job ran there."""
        for cluster, settings in self.config.clusters.items():
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in settings.match):
                return MachineSpec(
                    cluster=cluster,
                    cpus=settings.cpus or 1,
                    active_w=settings.active_w,
                    idle_w=settings.idle_w,
                    sleep_w=settings.sleep_w,
                    inferred=True,
                )
        return MachineSpec(inferred=True)

    def complete_machine(self, told: MachineSpec) -> MachineSpec:
        """A machine that an adapter told of, with its cluster's watts where it told none."""
        cluster = self.config.clusters.get(told.cluster)
        if cluster is None:
            return told
        known = {
            name: getattr(cluster, name)
            for name in ("active_w", "idle_w", "sleep_w")
            if getattr(told, name) is None
        }
        return msgspec.structs.replace(told, **known)


def load_config(path: Path) -> LoadedConfig:
    """Read and check a configuration file.

    Raises:
        ConfigurationError: the file is missing or wrong; names file, place and value.
        PluginError: not one adapter that it names can be loaded.
    """
    try:
        text = path.read_text(encoding="utf-8")
        given = tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: cannot be read: {error.strerror}; right would be a file as "
            "`outrider check-config --example` prints it"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f'{path}: not valid TOML: {error}; right would be lines like mode = "shadow", below '
            "headings like [adapters.pool]"
        ) from error
    except RecursionError as error:
        raise ConfigurationError(
            f"{path}: not valid TOML: nested too deep; right would be tables and lists at most a "
            "few deep"
        ) from error
    return check_config(given, str(path), TomlLines(text))


def check_config(given: Mapping[str, Any], source: str, line_of: LineOf = no_lines) -> LoadedConfig:
    """Check a configuration given as plain data: every key, every plugin, every setting.

    Args:
        given: the tables of the file.
        source: the file, as errors name it.
        line_of: finds the line of a key.

    Raises:
        ConfigurationError, PluginError: as `load_config`.
    """
    place = Place(source, (), line_of)
    clusters = given.get("clusters")
    for name, settings in clusters.items() if isinstance(clusters, dict) else ():
        if isinstance(settings, dict):
            _check_cluster(settings, place.inside("clusters", name))
    for name, record in _TABLES.items():
        if isinstance(given.get(name), dict):
            build(record, given[name], place.inside(name))
    config = build(Config, given, place)
    loaded = LoadedConfig(config, source, line_of=line_of)
    _check_clocks(loaded)
    check_targets(config.shares, place.inside("shares").of())
    loaded.utilities()
    loaded.make_estimator()
    if not config.adapters:
        known = ", ".join(find(ADAPTERS))
        raise ConfigurationError(
            f"{source}: no adapter, so there is nothing to watch; right would be a table "
            f"[adapters.NAME], known: {known}"
        )
    _check_adapters(loaded)
    _check_policies(loaded)
    _check_acting(loaded)
    check_listen(loaded)
    check_doors(loaded)
    return loaded


def _check_clocks(loaded: LoadedConfig) -> None:
    config = loaded.config
    try:
        time_zone(config.timezone)
    except ConfigurationError as error:
        right = 'an IANA name, as in timezone = "Europe/Berlin"'
        raise wrong_value(loaded.place, ("timezone",), config.timezone, right) from error
    try:
        loaded.reboot_day_s()
    except ValueError as error:
        right = 'a time of day, as in reboot = "03:00"'
        raise wrong_value(loaded.place, ("reboot",), config.reboot, right) from error


def _check_cluster(given: Mapping[str, Any], place: Place) -> None:
    settings = build(ClusterSettings, given, place)
    try:
        OpeningHours(settings.open)
    except ConfigurationError as error:
        raise ConfigurationError(f'{place.of(["open"])}: "open": {error}') from error


def _check_adapters(loaded: LoadedConfig) -> None:
    own_clocks = []
    for label, settings in loaded.config.adapters.items():
        kind, options = adapter_of(label, settings)
        adapter = _plugin(loaded, ADAPTERS, kind, f"adapters.{label}")
        if adapter is None:
            continue
        build(adapter.settings_type, options, loaded.place.inside("adapters", label))
        if adapter.own_clock:
            own_clocks.append(label)
    if own_clocks and len(loaded.config.adapters) > 1:
        where = loaded.place.inside("adapters", own_clocks[0]).of()
        raise ConfigurationError(
            f"{where}: a simulated site runs on a clock of its own; right would be no other "
            "adapter beside it"
        )
    if len(loaded.broken) == len(loaded.config.adapters):
        raise PluginError(f"{loaded.source}: {'; '.join(loaded.broken.values())}")


def _check_policies(loaded: LoadedConfig) -> None:
    for name, settings in policies_of(loaded.config).items():
        if _plugin(loaded, POLICIES, name, f"policies.{name}") is None:
            continue
        where = loaded.place.inside("policies", name)
        options = dict(settings)
        preset = options.pop("preset", None)
        try:
            policy = make_policy(name, options, loaded.config.seed, where, preset)
        except PluginError as error:  # it fails while it is made: the others can start
            loaded.broken[f"policies.{name}"] = str(error)
            continue
        if policy.needs_oracle:
            raise ConfigurationError(
                f"{where.of()}: needs the true run times, which only replay has; right would be "
                "a policy that learns or follows a rule, as bandit or sjf"
            )


def _check_acting(loaded: LoadedConfig) -> None:
    """Refuse a mode that acts where it is not clear on what, or by whom."""
    config = loaded.config
    if config.mode not in ACTING_MODES:
        return
    where = f'{loaded.place.of(["mode"])}: "mode" = {toml_text(config.mode)}'
    policies = policies_of(config)
    if len(policies) != 1:
        raise ConfigurationError(
            f"{where} with the policies {', '.join(policies)}; right would be one policy: what two "
            "want may contradict each other"
        )
    kinds = [adapter_of(*labelled)[0] for labelled in config.adapters.items()]
    if not any(load(ADAPTERS, kind).levers for kind in kinds if kind in find(ADAPTERS)):
        raise ConfigurationError(
            f"{where} with adapters that can change nothing ({', '.join(kinds)}); right would be "
            'mode = "shadow", or an adapter with a lever: see `outrider plugins`'
        )
    if config.mode == CANARY and not acting_of(config).has_canary:
        raise ConfigurationError(
            f"{where} without a canary; right would be some of canary_clusters, canary_users, "
            'canary_vos, canary_fraction below [acting], or canary_by = "days"'
        )
    if acting_of(config).canary_by == "days" and acting_of(config).names_jobs:
        raise ConfigurationError(
            f'{where} with canary_by = "days" acts on all jobs; right would be none of '
            "canary_clusters, canary_users, canary_vos, canary_fraction below [acting]"
        )


def _plugin(loaded: LoadedConfig, group: str, name: str, table: str) -> Any:
    """The class of a plugin, or None if it is broken: then that is noted and the rest goes on.

    Raises:
        ConfigurationError: there is no plugin of that name.
    """
    try:
        return load(group, name)
    except PluginError as error:
        if name not in find(group):
            where = loaded.place.inside(*table.split(".", 1)).of()
            raise ConfigurationError(f"{where}: {error}") from error
        loaded.broken[table] = str(error)
        return None


def check_listen(loaded: LoadedConfig) -> None:
    """Refuse to be seen beyond loopback without TLS and a token. Raises `ConfigurationError`."""
    config, where = loaded.config, loaded.place.of(["listen"])
    try:
        host, _ = listen_address(config)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if host in ("127.0.0.1", "::1", "localhost"):
        return
    missing = [key for key in ("tls_cert", "tls_key", "token_file") if not getattr(config, key)]
    if missing:
        raise ConfigurationError(
            f'{where}: "listen" = {toml_text(config.listen)} is beyond loopback and needs '
            f'{", ".join(missing)}; or listen on loopback, as in listen = "127.0.0.1:9690"'
        )


def check_doors(loaded: LoadedConfig) -> None:
    """Refuse a socket and names under which nobody could ask. Raises `ConfigurationError`."""
    config, place = loaded.config, loaded.place
    if config.socket is not None and not Path(config.socket).is_absolute():
        raise ConfigurationError(
            f'{place.of(["socket"])}: "socket" = {toml_text(config.socket)}: right would be a '
            'whole path, as in socket = "/run/outrider/outrider.sock"'
        )
    for name in config.host_names:
        if not name.strip() or any(sign in name for sign in "/@*, ") or name.count(":") == 1:
            raise ConfigurationError(
                f'{place.of(["host_names"])}: "host_names" has {toml_text(name)}: right would be a '
                'name alone, without scheme and port, as in host_names = ["outrider.example.org"]'
            )

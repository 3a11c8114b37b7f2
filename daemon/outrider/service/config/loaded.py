"""A configuration that was read and checked whole, and what it says of the site's machines."""

import fnmatch
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from outrider.api.estimator import RunTimeEstimator
from outrider.engine.accounting.fairness import check_targets
from outrider.model.clusters import ClusterSpec
from outrider.model.disciplines import Discipline
from outrider.model.errors import ConfigurationError, PluginError
from outrider.model.localtime import day_second, time_zone
from outrider.model.machines import MachineSpec
from outrider.model.opening import OpeningHours
from outrider.model.settings import build
from outrider.model.utility import TimeUtility
from outrider.plugins.finding import ADAPTERS, POLICIES, find, load
from outrider.plugins.making import make_estimator, make_policy, make_utilities
from outrider.service.config.declarations import (
    ClusterSettings,
    Config,
    adapter_of,
    listen_address,
    policies_of,
)
from outrider.service.config.discipline import DisciplineChoice, Proposal, choose_discipline
from outrider.service.config.mqtt_settings import PublishSettings


class LoadedConfig(msgspec.Struct, frozen=True):
    """A configuration that has been checked whole, and where it came from."""

    config: Config
    source: str
    broken: dict[str, str] = {}
    """Plugins that it names and that cannot be loaded or made, by table, and why: the rest can
    start."""

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
        return make_utilities(self.config.utilities, f"{self.source} utilities")

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
        where = f"{self.source} estimator"
        return None if name is None else make_estimator(name, self.config.seed, where)

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
        with path.open("rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from error
    return check_config(given, str(path))


def check_config(given: Mapping[str, Any], source: str) -> LoadedConfig:
    """Check a configuration given as plain data: every key, every plugin, every setting.

    Raises:
        ConfigurationError, PluginError: as `load_config`.
    """
    clusters = given.get("clusters")
    for name, settings in clusters.items() if isinstance(clusters, dict) else ():
        if isinstance(settings, dict):
            _check_cluster(
                build(ClusterSettings, settings, f"{source} [clusters.{name}]"), source, name
            )
    if isinstance(given.get("mqtt"), dict):
        build(PublishSettings, given["mqtt"], f"{source} [mqtt]")
    config = build(Config, given, source)
    loaded = LoadedConfig(config, source)
    try:
        time_zone(config.timezone)
    except ConfigurationError as error:
        raise ConfigurationError(f'{source}: "timezone": {error}') from error
    try:
        loaded.reboot_day_s()
    except ValueError as error:
        raise ConfigurationError(f'{source}: "reboot" = {error}') from error
    check_targets(config.shares, f"{source} [shares]")
    loaded.utilities()
    loaded.make_estimator()
    if not config.adapters:
        known = ", ".join(find(ADAPTERS))
        raise ConfigurationError(f"{source}: no adapter; add [adapters.NAME], known: {known}")
    _check_adapters(loaded)
    _check_policies(loaded)
    check_listen(config, source)
    return loaded


def _check_cluster(settings: ClusterSettings, source: str, name: str) -> None:
    try:
        OpeningHours(settings.open)
    except ConfigurationError as error:
        raise ConfigurationError(f"{source} [clusters.{name}]: {error}") from error


def _check_adapters(loaded: LoadedConfig) -> None:
    own_clocks = []
    for label, settings in loaded.config.adapters.items():
        kind, options = adapter_of(label, settings)
        adapter = _plugin(loaded, ADAPTERS, kind, f"adapters.{label}")
        if adapter is None:
            continue
        build(adapter.settings_type, options, f"{loaded.source} [adapters.{label}]")
        if adapter.own_clock:
            own_clocks.append(label)
    if own_clocks and len(loaded.config.adapters) > 1:
        raise ConfigurationError(
            f"{loaded.source} [adapters.{own_clocks[0]}]: a simulated site runs on a clock of its "
            "own and must be the only adapter"
        )
    if len(loaded.broken) == len(loaded.config.adapters):
        raise PluginError(f"{loaded.source}: {'; '.join(loaded.broken.values())}")


def _check_policies(loaded: LoadedConfig) -> None:
    for name, settings in policies_of(loaded.config).items():
        if _plugin(loaded, POLICIES, name, f"policies.{name}") is None:
            continue
        where = f"{loaded.source} [policies.{name}]"
        options = dict(settings)
        preset = options.pop("preset", None)
        try:
            policy = make_policy(name, options, loaded.config.seed, where, preset)
        except PluginError as error:  # it fails while it is made: the others can start
            loaded.broken[f"policies.{name}"] = str(error)
            continue
        if policy.needs_oracle:
            raise ConfigurationError(f"{where}: needs the true run times; only replay has them")


def _plugin(loaded: LoadedConfig, group: str, name: str, table: str) -> Any:
    """The class of a plugin, or None if it is broken: then that is noted and the rest goes on.

    Raises:
        ConfigurationError: there is no plugin of that name.
    """
    try:
        return load(group, name)
    except PluginError as error:
        if name not in find(group):
            raise ConfigurationError(f"{loaded.source} [{table}]: {error}") from error
        loaded.broken[table] = str(error)
        return None


def check_listen(config: Config, source: str) -> None:
    """Refuse to be seen beyond loopback without TLS and a token. Raises `ConfigurationError`."""
    try:
        host, _ = listen_address(config)
    except ConfigurationError as error:
        raise ConfigurationError(f"{source}: {error}") from error
    if host in ("127.0.0.1", "::1", "localhost"):
        return
    missing = [key for key in ("tls_cert", "tls_key", "token_file") if not getattr(config, key)]
    if missing:
        raise ConfigurationError(
            f'{source}: "listen" = {config.listen!r} is beyond loopback and needs '
            f"{', '.join(missing)}; or listen on 127.0.0.1"
        )

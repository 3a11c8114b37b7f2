"""Loading and full validation of a configuration, with its discipline, machines and plugins."""

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from outrider.acting.gate import ACTING_MODES, CANARY
from outrider.api.estimator import RunTimeEstimator
from outrider.engine.accounting.fairness import check_targets
from outrider.model.errors import ConfigurationError, PluginError
from outrider.model.localtime import day_second
from outrider.model.machines import ClusterSpec, MachineSpec, OpeningHours
from outrider.model.modes import FIRST_FIT, Discipline
from outrider.model.settings import LineOf, Place, build, no_lines, toml_text, wrong_value
from outrider.model.utility import TimeUtility
from outrider.plugins.finding import (
    ADAPTERS,
    POLICIES,
    find,
    load,
    make_estimator,
    make_policy,
    make_utilities,
)
from outrider.service.config.declarations import (
    acting_of,
    adapter_of,
    policies_of,
)
from outrider.service.config.reading import (
    ReadConfig,
    build_own,
    check_doors,
    check_listen,
    check_zone,
    read_tables,
)

# -- discipline ------------------------------------------------------------------------------------
# The active queue discipline and its source: the configuration, an adapter or the default.


class Proposal(NamedTuple):
    """The discipline that an adapter reports of its batch system."""

    type: str
    discipline: Discipline


class DisciplineChoice(NamedTuple):
    """The active queue discipline and its source.

    Attributes:
        name: one of `outrider.model.modes.DISCIPLINES`.
        source: what decided it.
        why: the same in words.
        note: a warning that adapters propose different ones; or empty.
    """

    name: Discipline
    source: Literal["configuration", "adapter", "default"]
    why: str
    note: str = ""


def choose_discipline(
    configured: Discipline | None, proposals: Mapping[str, Proposal]
) -> DisciplineChoice:
    """Return the configured discipline, else the first that an adapter proposes, else `first_fit`.

    Args:
        configured: the setting `discipline`, if it is set.
        proposals: by label of the adapter, in the order of the configuration.
    """
    proposed = [f"{label} ({p.type}) proposes {p.discipline}" for label, p in proposals.items()]
    if configured is not None:
        others = f"; {', '.join(proposed)}" if proposed else ""
        return DisciplineChoice(configured, "configuration", f"configured{others}")
    if not proposals:
        return DisciplineChoice(
            FIRST_FIT, "default", "not configured, and no adapter reports one of its batch system"
        )
    label, first = next(iter(proposals.items()))
    note = ""
    if len({proposal.discipline for proposal in proposals.values()}) > 1:
        note = (
            f"adapters propose different disciplines: {', '.join(proposed)}; that of the first "
            f"({label}) is active: {first.discipline}; set discipline to choose"
        )
    return DisciplineChoice(first.discipline, "adapter", f"adapter {proposed[0]}", note)


# -- loaded ----------------------------------------------------------------------------------------


class LoadedConfig(ReadConfig, frozen=True):
    """A configuration that has been checked whole, and where it came from."""

    broken: dict[str, str] = msgspec.field(default_factory=dict)
    """Named plugins that cannot be loaded or made: the cause by table. The rest can start."""

    def cluster_specs(self) -> list[ClusterSpec]:
        """Return the clusters that the configuration declares."""
        return [
            ClusterSpec(name, OpeningHours(settings.open))
            for name, settings in self.config.clusters.items()
        ]

    def reboot_day_s(self) -> float | None:
        """Return the second of the day of the nightly reboot, or None. Raises `ValueError`."""
        return None if self.config.reboot is None else day_second(self.config.reboot)

    def utilities(self) -> dict[str, TimeUtility]:
        """Return the utility functions by job class. Raises `ConfigurationError`, `PluginError`."""
        return make_utilities(self.config.utilities, self.place.inside("utilities"))

    def discipline(self) -> DisciplineChoice:
        """Return the active queue discipline and its source."""
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
        """Return the run time estimator, or None. Raises `PluginError`."""
        name = self.config.estimator
        if name is None:
            return None
        try:
            return make_estimator(name, self.config.seed, self.place)
        except PluginError as error:
            raise type(error)(f'{self.place.of(["estimator"])}: "estimator": {error}') from error

    def describe_machine(self, name: str) -> MachineSpec:
        """Return the configured facts of a machine that is only known from its jobs."""
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

    def complete_machine(self, reported: MachineSpec) -> MachineSpec:
        """Return the machine as reported, with its cluster's watts where none were reported."""
        cluster = self.config.clusters.get(reported.cluster)
        if cluster is None:
            return reported
        known = {
            name: getattr(cluster, name)
            for name in ("active_w", "idle_w", "sleep_w")
            if getattr(reported, name) is None
        }
        return msgspec.structs.replace(reported, **known)


def load_config(path: Path) -> LoadedConfig:
    """Read and check a configuration file.

    Raises:
        ConfigurationError: the file is missing or wrong; names file, place and value.
        PluginError: not one adapter that it names can be loaded.
    """
    given, line_of = read_tables(path)
    return check_config(given, str(path), line_of)


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
    config = build_own(given, place)
    loaded = LoadedConfig(config, source, line_of=line_of)
    _check_clocks(loaded)
    check_targets(config.shares, place.inside("shares").of())
    loaded.utilities()
    loaded.make_estimator()
    if not config.adapters:
        known = ", ".join(find(ADAPTERS))
        raise ConfigurationError(
            f"{source}: no adapter, so there is nothing to watch; expected a table "
            f"[adapters.NAME], known: {known}"
        )
    _check_adapters(loaded)
    _check_policies(loaded)
    _check_acting(loaded)
    check_listen(loaded)
    check_doors(loaded)
    return loaded


def _check_clocks(loaded: LoadedConfig) -> None:
    check_zone(loaded)
    try:
        loaded.reboot_day_s()
    except ValueError as error:
        right = 'a time of day, as in reboot = "03:00"'
        raise wrong_value(loaded.place, ("reboot",), loaded.config.reboot, right) from error


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
            f"{where}: a simulated site runs on its own clock; expected no other adapter next to it"
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
        except PluginError as error:  # this policy cannot be made: the others can start
            loaded.broken[f"policies.{name}"] = str(error)
            continue
        if policy.needs_oracle:
            raise ConfigurationError(
                f"{where.of()}: needs the true run times, which only replay has; expected "
                "a policy that learns or follows a rule, as bandit or sjf"
            )


def _check_acting(loaded: LoadedConfig) -> None:
    """Refuse a mode that acts if the policy, the lever or the canary is not clear."""
    config = loaded.config
    if config.mode not in ACTING_MODES:
        return
    where = f'{loaded.place.of(["mode"])}: "mode" = {toml_text(config.mode)}'
    policies = policies_of(config)
    if len(policies) != 1:
        raise ConfigurationError(
            f"{where} with the policies {', '.join(policies)}; expected one policy, because "
            "the decisions of two may contradict each other"
        )
    kinds = [adapter_of(*labelled)[0] for labelled in config.adapters.items()]
    if not any(load(ADAPTERS, kind).levers for kind in kinds if kind in find(ADAPTERS)):
        raise ConfigurationError(
            f"{where} with adapters that can change nothing ({', '.join(kinds)}); expected "
            'mode = "shadow", or an adapter with a lever: see `outrider plugins`'
        )
    if config.mode == CANARY and not acting_of(config).has_canary:
        raise ConfigurationError(
            f"{where} without a canary; expected some of canary_clusters, canary_users, "
            'canary_vos, canary_fraction below [acting], or canary_by = "days"'
        )
    if acting_of(config).canary_by == "days" and acting_of(config).names_jobs:
        raise ConfigurationError(
            f'{where} with canary_by = "days" acts on all jobs; expected none of '
            "canary_clusters, canary_users, canary_vos, canary_fraction below [acting]"
        )


def _plugin(loaded: LoadedConfig, group: str, name: str, table: str) -> Any:
    """Return the class of a plugin, or None if it is broken; that is recorded in `broken`.

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

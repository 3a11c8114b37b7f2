"""A proposal as a part of a configuration file: the adapters' tables, and the machine groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model.setting_kinds import toml_key, toml_text
from outrider.service.config.declarations import ClusterSettings, Config
from outrider.service.suggestion.grouping import MOST_GROUPS, Group, Grouping, by_attribute, by_name

NO_CLUSTER: Final = "default"
"""What adapters call the cluster of a machine of which nothing tells one."""
_TOLD_RATIO: Final = 0.9
_SHOWN: Final = 3
_WATTS: Final = (
    ("active_w", "watts of a busy machine, by a plug meter or its data sheet"),
    ("idle_w", "of an idle one"),
    ("sleep_w", "of a sleeping one"),
)


class Seen(NamedTuple):
    """What one adapter sees.

    Attributes:
        label: of the adapter.
        machines: cluster of each machine by name, as the settings have it now.
        attributes: what else the site says of each, by attribute.
        cluster_setting, pattern_setting: as of `outrider.api.Adapter`.
    """

    label: str
    machines: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, str]] = {}
    cluster_setting: str | None = None
    pattern_setting: str | None = None


class Proposal(NamedTuple):
    """How the machines of an adapter are grouped, and the settings that do it.

    Attributes:
        grouping: of the machines.
        settings: of the adapter, to be added.
        how: in words.
        has_patterns: the groups' tables need their patterns.
    """

    grouping: Grouping
    settings: dict[str, Any]
    how: str
    has_patterns: bool = False


def proposed(seen: Seen) -> Proposal:
    """The groups that an adapter tells already, else by an attribute, else by names."""
    told = _told_now(seen.machines)
    if len(told.groups) > 1:
        return Proposal(told, {}, "as they are told now")
    if seen.cluster_setting is not None and (found := by_attribute(seen.attributes)) is not None:
        settings = {seen.cluster_setting: found.attribute}
        return Proposal(found, settings, f"by what their attribute {found.attribute} says")
    named = by_name(seen.machines)
    if len(named.groups) < 2 and told.groups:
        return Proposal(told, {}, "as they are told now")
    if seen.pattern_setting is not None and named.groups:
        patterns = {group.pattern: group.name for group in named.groups}
        return Proposal(named, {seen.pattern_setting: patterns}, "by how their names begin")
    return Proposal(named, {}, "by how their names begin", has_patterns=True)


def _told_now(machines: Mapping[str, str]) -> Grouping:
    """The groups that nearly all machines are in already; none where that is not so."""
    members: dict[str, list[str]] = {}
    for machine, cluster in sorted(machines.items()):
        members.setdefault(cluster, []).append(machine)
    alone = members.pop(NO_CLUSTER, [])
    told = sum(map(len, members.values()))
    if not members or len(members) > MOST_GROUPS or told < _TOLD_RATIO * len(machines):
        return Grouping(())
    ordered = sorted(members.items(), key=lambda one: (-len(one[1]), one[0]))
    groups = tuple(Group(name, "", tuple(of)) for name, of in ordered)
    return Grouping(groups, alone=tuple(alone))


def fragment(config: Config, every: Iterable[Seen]) -> str:
    """Tables that a site may put into its configuration, in place of those of the same names.

    Args:
        config: as it is now: what it says is kept.
        every: what each adapter sees.
    """
    adapters = {label: dict(table) for label, table in config.adapters.items()}
    lines = [
        "# Proposed by `outrider doctor --suggest` from the machines that are seen. Look at it,",
        "# write watts where you know them, and put it in place of the tables of these names.",
    ]
    groups: list[tuple[Group, bool]] = []
    notes: dict[str, list[str]] = {}
    for seen in every:
        proposal = proposed(seen)
        adapters[seen.label] |= proposal.settings
        notes[seen.label] = _words(seen, proposal)
        groups += [(group, proposal.has_patterns) for group in proposal.grouping.groups]
    for label, table in adapters.items():
        lines += ["", *notes.get(label, ()), f"[adapters.{toml_key(label)}]"]
        lines += [f"{toml_key(key)} = {toml_text(value)}" for key, value in table.items()]
    told: set[str] = set()
    for group, has_pattern in groups:
        if group.name not in told:
            told.add(group.name)
            lines += ["", *_cluster(group, has_pattern, config.clusters.get(group.name))]
    return "\n".join(lines) + "\n"


def _words(seen: Seen, proposal: Proposal) -> list[str]:
    if not seen.machines:
        return ["# No machine was seen."]
    if not proposal.grouping.groups:
        return [f"# {len(seen.machines):,} machines, whose names have nothing in common."]
    lines = [f"# {len(seen.machines):,} machines, grouped {proposal.how}."]
    if alone := proposal.grouping.alone:
        lines.append(f"# In no group: {_some(alone)}.")
    return lines


def _cluster(group: Group, has_pattern: bool, known: ClusterSettings | None) -> list[str]:
    """The table of a group: what is known of it, and what is to be filled in."""
    lines = [f"[clusters.{toml_key(group.name)}]", f"# {_some(group.machines)}"]
    told = {} if known is None else msgspec.structs.asdict(known)
    if has_pattern and not told.get("match"):
        lines.append(f"match = {toml_text([group.pattern])}")
    usual = msgspec.structs.asdict(ClusterSettings())
    lines += [f"{k} = {toml_text(v)}" for k, v in told.items() if v != usual[k]]
    lines += [f"# {key} =      # {what}" for key, what in _WATTS if told.get(key) is None]
    if told.get("open") in (None, usual["open"]):
        lines.append('# open = "mon-fri 09:00-17:00"      # when owners use them; unset: always')
    return lines


def _some(names: Sequence[str]) -> str:
    """The number of machines and the first of them, on one line whatever their names hold."""
    shown = ", ".join("".join(c for c in n if c.isprintable()) for n in names[:_SHOWN])
    more = ", ..." if len(names) > _SHOWN else ""
    return f"{len(names):,} machine{'s' if len(names) > 1 else ''}: {shown}{more}"

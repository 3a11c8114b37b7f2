"""Suggested machine groups, as tables of a configuration file (`outrider doctor --suggest`)."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model.printable import clean_name
from outrider.model.settings import toml_key, toml_text
from outrider.service.config.declarations import ClusterSettings, Config

# -- grouping --------------------------------------------------------------------------------------
# Groups of machines by their attributes or their names. Pure code.
#
# Names and attributes only hint at which machines share a room and a power bill. The proposal is
# for an admin to check: few groups, each of several machines.

MAX_GROUPS: Final = 16
"""Most groups in a proposal: an admin has to set the watts of each."""
_COVERED_RATIO: Final = 0.9
"""Least ratio of the machines that must have an attribute for it to define groups."""
_HINTS: Final = re.compile(
    r"cluster|room|lab|building|hall|floor|rack|site|location|campus|department|group|zone|owner",
    re.IGNORECASE,
)
"""Matches names of attributes about the place or the owner of a machine."""
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+|[\W_]", re.UNICODE)
_LEFT: Final = "-_. "
"""Characters at the end of a prefix that are left out of a group's name."""


class Group(NamedTuple):
    """A proposed group of machines.

    Attributes:
        name: name of the group.
        pattern: shell pattern of its machines' names; empty if an attribute defines the group.
        machines: names of the machines, sorted.
    """

    name: str
    pattern: str
    machines: tuple[str, ...]


class Grouping(NamedTuple):
    """A division of machines into groups.

    Attributes:
        groups: by attribute, the largest first; by pattern, in the order of matching, in which the
            first that fits a name counts.
        attribute: the attribute whose values define the groups; empty: names do.
        alone: machines in no group, sorted.
    """

    groups: tuple[Group, ...]
    attribute: str = ""
    alone: tuple[str, ...] = ()


def by_attribute(attributes: Mapping[str, Mapping[str, str]]) -> Grouping | None:
    """Return groups by the attribute that splits the machines best; None: none does.

    Args:
        attributes: attributes of each machine, by its name.
    """
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for machine, own in attributes.items():
        for name, value in own.items():
            values[name][value].append(machine)
    best: tuple[tuple[bool, float, float, str], str] | None = None
    for name, groups in values.items():
        covered = sum(map(len, groups.values()))
        if not (1 < len(groups) <= MAX_GROUPS) or covered < _COVERED_RATIO * len(attributes):
            continue
        largest = max(map(len, groups.values())) / covered
        if len(groups) * 2 > covered:
            continue  # nearly every machine has a different value
        rank = (bool(_HINTS.search(name)), covered / len(attributes), -largest, name)
        best = max(best, (rank, name)) if best is not None else (rank, name)
    if best is None:
        return None
    found = values[best[1]]
    grouped = {machine for of in found.values() for machine in of}
    ordered = sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    groups_of = tuple(Group(value, "", tuple(sorted(of))) for value, of in ordered)
    return Grouping(groups_of, best[1], tuple(sorted(attributes.keys() - grouped)))


def by_name(machines: Iterable[str]) -> Grouping:
    """Return groups of machines whose names have a common prefix.

    The finest prefixes that give at most `MAX_GROUPS` are used; a machine that shares its prefix
    with no other is alone. Each machine of a group fits its pattern, and no earlier one.
    """
    names = sorted(set(machines))
    if len(names) == 1:
        [only] = names
        return Grouping((Group(_group_name(only.partition(".")[0]), literal(only), (only,)),))
    for prefix_of in _LEVELS:
        found = _shared(names, prefix_of)
        if 1 <= len(found) <= MAX_GROUPS:
            break
    else:  # too many groups even with the coarsest prefixes: keep the largest
        largest = Counter({prefix: len(of) for prefix, of in found.items()})
        found = {prefix: found[prefix] for prefix, _ in largest.most_common(MAX_GROUPS)}
    grouping = _grouping(names, list(found))
    domains = _by_domain(names)
    return domains if len(grouping.groups) < 2 <= len(domains.groups) else grouping


def _by_domain(names: Sequence[str]) -> Grouping:
    """Return groups by the domain of the names, if there are several domains."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[name.partition(".")[2]].append(name)
    several = {d: of for d, of in found.items() if d and len(of) > 1}
    if len(several) > MAX_GROUPS:
        return Grouping(())
    taken: set[str] = set()
    groups = [
        Group(_unique(domain.partition(".")[0], taken), f"*.{literal(domain)}", tuple(of))
        for domain, of in sorted(several.items(), key=lambda one: (-len(one[0]), one[0]))
    ]
    grouped = {name for group in groups for name in group.machines}
    return Grouping(tuple(groups), alone=tuple(name for name in names if name not in grouped))


def _grouping(names: Sequence[str], prefixes: list[str]) -> Grouping:
    """Return the machines of each prefix; the longer one counts if two fit."""
    ordered = sorted(prefixes, key=lambda prefix: (-len(prefix), prefix))
    members: dict[str, list[str]] = {prefix: [] for prefix in ordered}
    alone: list[str] = []
    for name in names:
        fits = next((prefix for prefix in ordered if name.startswith(prefix)), None)
        (alone if fits is None else members[fits]).append(name)
    taken: set[str] = set()
    groups = []
    for prefix in ordered:
        if members[prefix]:
            group = _unique(_group_name(prefix), taken)
            groups.append(Group(group, f"{literal(prefix)}*", tuple(members[prefix])))
    return Grouping(tuple(groups), alone=tuple(alone))


def _shared(names: Iterable[str], prefix_of: Callable[[list[str]], str]) -> dict[str, list[str]]:
    """Return the names by prefix, for prefixes that several names share."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        parts = _PARTS.findall(name.partition(".")[0])
        found[prefix_of(parts)].append(name)
    return {prefix: of for prefix, of in found.items() if len(of) > 1}


def _before_last_number(parts: list[str]) -> str:
    """Return ``lib-a-`` of ``lib-a-07``, ``r1n`` of ``r1n05``; all parts without a number."""
    places = [n for n, part in enumerate(parts) if part.isdigit()]
    return "".join(parts[: places[-1]] if places else parts)


def _before_first_number(parts: list[str]) -> str:
    """Return ``lib-a-`` of ``lib-a-07``, ``r`` of ``r1n05``."""
    places = [n for n, part in enumerate(parts) if part.isdigit()]
    return "".join(parts[: places[0]] if places else parts)


def _first_word(parts: list[str]) -> str:
    """Return ``lib`` of ``lib-a-07``."""
    return parts[0] if parts and not parts[0].isdigit() else ""


_LEVELS: Final = (_before_last_number, _before_first_number, _first_word)
"""Prefix functions, from fine to coarse."""


def _group_name(prefix: str) -> str:
    return prefix.strip(_LEFT) or "machines"


def _unique(name: str, taken: set[str]) -> str:
    number = 2
    unique = name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    taken.add(unique)
    return unique


def literal(text: str) -> str:
    """Return a pattern (of `fnmatch`) that matches only this text.

    >>> literal("pc[1]*")
    'pc[[]1][*]'
    """
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in text)


# -- fragment --------------------------------------------------------------------------------------

NO_CLUSTER: Final = "default"
"""Cluster name that adapters use for a machine without a known cluster."""
_REPORTED_RATIO: Final = 0.9
_SHOWN: Final = 3
_WATTS: Final = (
    ("active_w", "watts of a busy machine, by a plug meter or its data sheet"),
    ("idle_w", "of an idle one"),
    ("sleep_w", "of a sleeping one"),
)


class Seen(NamedTuple):
    """The machines that one adapter sees.

    Attributes:
        label: label of the adapter.
        machines: cluster of each machine by name, with the current settings.
        attributes: further attributes of each machine.
        cluster_setting, pattern_setting: see `outrider.api.Adapter`.
    """

    label: str
    machines: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, str]] = {}
    cluster_setting: str | None = None
    pattern_setting: str | None = None


class Proposal(NamedTuple):
    """A proposed grouping of an adapter's machines, with the settings for it.

    Attributes:
        grouping: the groups of machines.
        settings: settings to add to the adapter's table.
        how: description of the grouping.
        has_patterns: true if the groups' tables need their patterns.
    """

    grouping: Grouping
    settings: dict[str, Any]
    how: str
    has_patterns: bool = False


def proposed(seen: Seen) -> Proposal:
    """Return the groups that the adapter reports already, else by an attribute, else by names."""
    reported = _reported_groups(seen.machines)
    if len(reported.groups) > 1:
        return Proposal(reported, {}, "as the adapter reports them now")
    if seen.cluster_setting is not None and (found := by_attribute(seen.attributes)) is not None:
        settings = {seen.cluster_setting: found.attribute}
        return Proposal(found, settings, f"by their attribute {found.attribute}")
    named = by_name(seen.machines)
    if len(named.groups) < 2 and reported.groups:
        return Proposal(reported, {}, "as the adapter reports them now")
    if seen.pattern_setting is not None and named.groups:
        patterns = {group.pattern: group.name for group in named.groups}
        return Proposal(named, {seen.pattern_setting: patterns}, "by the beginning of their names")
    return Proposal(named, {}, "by the beginning of their names", has_patterns=True)


def _reported_groups(machines: Mapping[str, str]) -> Grouping:
    """Return the reported groups if nearly all machines are in one; else none."""
    members: dict[str, list[str]] = {}
    for machine, cluster in sorted(machines.items()):
        members.setdefault(cluster, []).append(machine)
    alone = members.pop(NO_CLUSTER, [])
    reported = sum(map(len, members.values()))
    if not members or len(members) > MAX_GROUPS or reported < _REPORTED_RATIO * len(machines):
        return Grouping(())
    ordered = sorted(members.items(), key=lambda one: (-len(one[1]), one[0]))
    groups = tuple(Group(name, "", tuple(of)) for name, of in ordered)
    return Grouping(groups, alone=tuple(alone))


def fragment(config: Config, every: Iterable[Seen]) -> str:
    """Return tables for a site's configuration, in place of those of the same names.

    Args:
        config: the current configuration, whose settings are kept.
        every: the machines that each adapter sees.
    """
    adapters = {label: dict(table) for label, table in config.adapters.items()}
    lines = [
        "# Proposed by `outrider doctor --suggest` from the machines that are seen. Check it, add",
        "# the watts that you know, and replace the tables of these names in your configuration.",
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
    listed: set[str] = set()
    for group, has_pattern in groups:
        if group.name not in listed:
            listed.add(group.name)
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
    """Return the table of a group: its known settings, and those to be filled in."""
    lines = [f"[clusters.{toml_key(group.name)}]", f"# {_some(group.machines)}"]
    given = {} if known is None else msgspec.structs.asdict(known)
    if has_pattern and not given.get("match"):
        lines.append(f"match = {toml_text([group.pattern])}")
    usual = msgspec.structs.asdict(ClusterSettings())
    lines += [f"{k} = {toml_text(v)}" for k, v in given.items() if v != usual[k]]
    lines += [f"# {key} =      # {what}" for key, what in _WATTS if given.get(key) is None]
    if given.get("open") in (None, usual["open"]):
        lines.append('# open = "mon-fri 09:00-17:00"      # when owners use them; unset: always')
    return lines


def _some(names: Sequence[str]) -> str:
    """Return the number of machines and the first names, on one line without control characters."""
    shown = ", ".join(map(clean_name, names[:_SHOWN]))
    more = ", ..." if len(names) > _SHOWN else ""
    return f"{len(names):,} machine{'s' if len(names) > 1 else ''}: {shown}{more}"

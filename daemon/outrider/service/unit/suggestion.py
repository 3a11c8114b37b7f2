"""A proposal as a part of a configuration file: the adapters' tables, and the machine groups."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model.settings import toml_key, toml_text
from outrider.service.config.declarations import ClusterSettings, Config

# -- grouping --------------------------------------------------------------------------------------
# Machines that sit together, told by what a site says of them or by their names. Pure code.
#
# Nobody can know which machines share a room and a power bill; names and attributes hint at it.
# What is proposed here is for a person to look at: few groups, each of several machines.

MOST_GROUPS: Final = 16
"""More than a handful is no help to who has to write watts for each."""
_COVERED_RATIO: Final = 0.9
"""Of the machines, those that an attribute has to tell a group of."""
_HINTS: Final = re.compile(
    r"cluster|room|lab|building|hall|floor|rack|site|location|campus|department|group|zone|owner",
    re.IGNORECASE,
)
"""In the name of an attribute: it is about where a machine stands, or whose it is."""
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+|[\W_]", re.UNICODE)
_LEFT: Final = "-_. "
"""Signs at the end of a prefix that do not belong into a group's name."""


class Group(NamedTuple):
    """Machines that are proposed to be one group.

    Attributes:
        name: of the group.
        pattern: of its machines' names, as in a shell; empty where an attribute tells it.
        machines: their names, sorted.
    """

    name: str
    pattern: str
    machines: tuple[str, ...]


class Grouping(NamedTuple):
    """A way to group machines.

    Attributes:
        groups: the largest first for attributes; patterns stand in the order in which the first
            that fits a name is right.
        attribute: whose values they are; empty: they follow from names.
        alone: machines in none of them, sorted.
    """

    groups: tuple[Group, ...]
    attribute: str = ""
    alone: tuple[str, ...] = ()


def by_attribute(attributes: Mapping[str, Mapping[str, str]]) -> Grouping | None:
    """Groups by the attribute that splits the machines best; None: none does.

    Args:
        attributes: of each machine, by their names.
    """
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for machine, own in attributes.items():
        for name, value in own.items():
            values[name][value].append(machine)
    best: tuple[tuple[bool, float, float, str], str] | None = None
    for name, groups in values.items():
        told = sum(map(len, groups.values()))
        if not (1 < len(groups) <= MOST_GROUPS) or told < _COVERED_RATIO * len(attributes):
            continue
        largest = max(map(len, groups.values())) / told
        if len(groups) * 2 > told:
            continue  # nearly each machine has a value of its own
        rank = (bool(_HINTS.search(name)), told / len(attributes), -largest, name)
        best = max(best, (rank, name)) if best is not None else (rank, name)
    if best is None:
        return None
    found = values[best[1]]
    told_of = {machine for of in found.values() for machine in of}
    ordered = sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    groups_of = tuple(Group(value, "", tuple(sorted(of))) for value, of in ordered)
    return Grouping(groups_of, best[1], tuple(sorted(attributes.keys() - told_of)))


def by_name(machines: Iterable[str]) -> Grouping:
    """Groups by what names have in common at their beginning.

    The finest prefixes that make no more than `MOST_GROUPS`; a machine that shares its prefix with
    no other is alone. Each machine of a group fits its pattern and none that stands before.
    """
    names = sorted(set(machines))
    if len(names) == 1:
        [only] = names
        return Grouping((Group(_group_name(only.partition(".")[0]), literal(only), (only,)),))
    for prefix_of in _LEVELS:
        found = _shared(names, prefix_of)
        if 1 <= len(found) <= MOST_GROUPS:
            break
    else:  # too many of the coarsest, too: the largest
        largest = Counter({prefix: len(of) for prefix, of in found.items()})
        found = {prefix: found[prefix] for prefix, _ in largest.most_common(MOST_GROUPS)}
    grouping = _grouping(names, list(found))
    domains = _by_domain(names)
    return domains if len(grouping.groups) < 2 <= len(domains.groups) else grouping


def _by_domain(names: Sequence[str]) -> Grouping:
    """By what stands behind the first dot, where that tells several groups apart."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[name.partition(".")[2]].append(name)
    several = {d: of for d, of in found.items() if d and len(of) > 1}
    if len(several) > MOST_GROUPS:
        return Grouping(())
    taken: set[str] = set()
    groups = [
        Group(_unique(domain.partition(".")[0], taken), f"*.{literal(domain)}", tuple(of))
        for domain, of in sorted(several.items(), key=lambda one: (-len(one[0]), one[0]))
    ]
    grouped = {name for group in groups for name in group.machines}
    return Grouping(tuple(groups), alone=tuple(name for name in names if name not in grouped))


def _grouping(names: Sequence[str], prefixes: list[str]) -> Grouping:
    """Return the machines of each prefix; the longer one counts where two fit."""
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
    """Names by prefix, where several have one."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        parts = _PARTS.findall(name.partition(".")[0])
        found[prefix_of(parts)].append(name)
    return {prefix: of for prefix, of in found.items() if len(of) > 1}


def _before_last_number(parts: list[str]) -> str:
    """``lib-a-`` of ``lib-a-07``, ``r1n`` of ``r1n05``; the whole where there is no number."""
    places = [n for n, part in enumerate(parts) if part.isdigit()]
    return "".join(parts[: places[-1]] if places else parts)


def _before_first_number(parts: list[str]) -> str:
    """``lib-a-`` of ``lib-a-07``, ``r`` of ``r1n05``."""
    places = [n for n, part in enumerate(parts) if part.isdigit()]
    return "".join(parts[: places[0]] if places else parts)


def _first_word(parts: list[str]) -> str:
    """``lib`` of ``lib-a-07``."""
    return parts[0] if parts and not parts[0].isdigit() else ""


_LEVELS: Final = (_before_last_number, _before_first_number, _first_word)
"""From fine to coarse."""


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
    """Return a text as a pattern (of `fnmatch`) that fits nothing else.

    >>> literal("pc[1]*")
    'pc[[]1][*]'
    """
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in text)


# -- fragment --------------------------------------------------------------------------------------

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
    """Return the groups that an adapter tells already, else by an attribute, else by names."""
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
    """Return the groups that nearly all machines are in already; none where that is not so."""
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
    """Return the table of a group: what is known of it, and what is to be filled in."""
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

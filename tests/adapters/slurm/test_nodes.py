"""Nodes from the output of ``scontrol show node``."""

from outrider.api import events
from outrider_adapters.slurm.nodes import Node, amount_of, changes, nodes_of

LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=4 CPUAlloc=2 CPUEfctv=14 CPUTot=16 CPULoad=0.5 "
    "AvailableFeatures=ssd,intel ActiveFeatures=ssd Gres=gpu:a100:4(S:0-1),gpu:t4:2 "
    "OS=Linux 6.1 #1 SMP State of the art RealMemory=64000 AllocMem=0 State={state} "
    "ThreadsPerCore=2 Partitions=batch,express CurrentWatts={watts} AveWatts=0 {more}"
)


def node(state: str = "IDLE", watts: str = "0", more: str = "") -> Node:
    """Return the only node of scontrol's output."""
    shown = LINE.format(name="n1", state=state, watts=watts, more=more)
    return nodes_of(shown + "\n\n", lambda _, partitions: partitions[0])["n1"]


def kinds(before: Node | None, after: Node) -> list[str]:
    """Return the events between two looks."""
    reported = changes("n1", before.seen if before else None, after, 5.0, consumes_memory=True)
    assert all(time_s == 5.0 for time_s, *_ in reported)
    return [events.KIND_NAMES[kind] for _, kind, _, _ in reported]


def test_a_node_as_slurm_shows_it() -> None:
    reported = node()
    assert (reported.cluster, reported.cpus, reported.memory_mib, reported.gpus) == (
        "batch",
        14,
        64_000.0,
        6.0,
    )
    assert reported.features == {"ssd"}, "those that are active"
    assert (reported.usable, reported.asleep, reported.allocated, reported.watts) == (
        True,
        False,
        2,
        None,
    )
    assert reported.partitions == ("batch", "express")


def test_memory_counts_only_where_slurm_gives_it_out() -> None:
    with_memory, without = node().spec(True).resources, node().spec(False).resources
    assert with_memory is not None
    assert without is not None
    assert (with_memory.memory_mib, without.memory_mib) == (64_000.0, None)


def test_states_in_which_no_job_begins() -> None:
    for state in (
        "DOWN", "DOWN*", "IDLE*", "IDLE+DRAIN", "MIXED+DRAIN", "ALLOCATED+DRAIN", "IDLE+MAINT",
        "IDLE+RESERVED", "UNKNOWN", "IDLE+POWERING_DOWN", "FUTURE", "IDLE+REBOOT_ISSUED",
        "idle+drain",
    ):  # fmt: skip
        assert not node(state).usable, state
    for state in (
        "IDLE", "MIXED", "ALLOCATED", "COMPLETING", "IDLE+PLANNED", "IDLE+CLOUD",
        "IDLE+CLOUD+POWERED_DOWN", "IDLE+POWERING_UP", "ALLOCATED+COMPLETING",
        "ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP",
    ):  # fmt: skip
        assert node(state).usable, state
    assert node("IDLE+CLOUD+POWERED_DOWN").asleep


def test_why_a_node_is_closed() -> None:
    reason = "Reason=broken fan [root@2026-11-29T08:07:13]"
    for state, words in {
        "IDLE+DRAIN": "drained (IDLE+DRAIN: broken fan)",
        "MIXED+DRAIN": "draining, its jobs still run (MIXED+DRAIN: broken fan)",
        "DOWN*": "down (DOWN*: broken fan)",
        "DOWN+DRAIN": "down (DOWN+DRAIN: broken fan)",
        "IDLE+REBOOT_ISSUED": "rebooting (IDLE+REBOOT_ISSUED: broken fan)",
        "IDLE": "",
    }.items():
        assert node(state, more=reason).why_closed == words
    assert node("IDLE*").why_closed == "not responding (IDLE*)"
    assert node("MIXED+DRAIN").why_closed.endswith("(MIXED+DRAIN: no reason given)")
    assert node("IDLE+MAINT").why_closed == "in maintenance (IDLE+MAINT)"
    assert node("IDLE+POWERING_DOWN").why_closed == "powering down (IDLE+POWERING_DOWN)"


def test_a_reason_ends_before_who_gave_it_and_what_newer_releases_add() -> None:
    for more in (
        "Reason=broken fan [root@1795949933]",
        "Reason=broken fan [root@1795949933] ReservationName=upgrade",
        "Reason=broken fan [root@1795949933] Comment=x [y@z] Extra=ex tra",
    ):
        assert node("IDLE+DRAIN", more=more).reason == "broken fan"


def test_an_administrators_words_are_no_pairs() -> None:
    reported = node("IDLE+DRAIN", more="Reason=disk CPUTot=99 State=IDLE Gres=gpu:99 [root@now]")
    assert (reported.cpus, reported.usable, reported.gpus) == (14, False, 6.0)
    assert reported.reason.startswith("disk CPUTot=99")


def test_what_happened_between_two_looks() -> None:
    idle = node()
    assert kinds(None, idle) == ["joined"]
    assert kinds(idle, idle) == []
    assert kinds(idle, node("IDLE+DRAIN")) == ["drained"]
    assert kinds(node("DOWN*"), idle) == ["usable"]
    assert kinds(idle, node("IDLE+POWERED_DOWN")) == ["asleep"]
    assert kinds(node("IDLE+POWERED_DOWN"), idle) == ["woken"]
    assert kinds(idle, node(watts="310")) == ["power"]
    assert kinds(node(watts="310"), node(watts="310")) == []
    assert kinds(None, node("DOWN", watts="90")) == ["joined", "power"]


def test_generic_resources_by_name_and_type() -> None:
    assert amount_of("gpu:a100:4(S:0-1),gpu:t4:2,lustre:1K", "gpu") == 6.0
    assert amount_of("gpu:a100:4(S:0-1),gpu:t4:2", "gpu:t4") == 2.0
    assert amount_of("gpus:8", "gpu") == 0.0
    assert amount_of("", "gpu") == 0.0

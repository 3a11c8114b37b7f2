"""Waiting reasons of states that a real Slurm shows for a moment only."""

from typing import Any

from outrider.api import WaitingReason
from outrider_adapters.slurm.eligibility import Eligibility, kind_of
from outrider_adapters.slurm.nodes import Node, partitions_of
from outrider_adapters.slurm.reasons import Ahead, WaitingFacts, waiting_reason
from tests.adapters.slurm.rows import row
from tests.adapters.slurm.test_nodes import node

NOBODY = Ahead(0, 0, 0, ())


def why(nodes: dict[str, Node], ahead: Ahead = NOBODY, **changed: str) -> WaitingReason:
    """Return why a job waits, beside these nodes."""
    waiting = row(**changed)
    partitions = partitions_of("PartitionName=batch State=UP MaxTime=1:00:00 MaxNodes=UNLIMITED\n")
    eligibility = Eligibility()
    eligibility.know(nodes, partitions, {})
    facts: dict[str, Any] = {
        "job": "7", "row": waiting, "shown_eligible_s": waiting.eligible_s, "row_id": "7",
        "dependency": "", "qos": "normal", "ahead": ahead, "tasks": (0, 0), "parts": (),
        "kind": kind_of(waiting, ""), "nodes": nodes, "partitions": partitions,
        "reservations": {}, "now_s": 2_000.0, "limit": None, "licences": (),
    }  # fmt: skip
    return waiting_reason(WaitingFacts(**facts), eligibility)


def test_free_nodes_that_are_powered_down_are_counted_and_named_so() -> None:
    awake, asleep = node(), node("IDLE+CLOUD+POWERED_DOWN")
    waking = node("MIXED+NOT_RESPONDING+POWERING_UP")
    for nodes, off in (
        ({"n1": awake, "n2": asleep, "n3": waking}, "(2 of them are powered down, and must boot"),
        ({"n1": awake, "n2": asleep}, "(1 of them is powered down, and must boot first)"),
    ):
        n = len(nodes)
        counted = f"{n} of the {n} nodes that it may use have so many CPUs and so much memory free"
        assert f"{counted} {off}" in why(nodes, Reason="Resources").sentence
    assert "powered" not in why({"n1": awake}, Reason="Resources").sentence


def test_a_node_that_did_not_wake_up_is_closed_for_that_reason() -> None:
    failed = node("DOWN+CLOUD+POWERED_DOWN", more="Reason=ResumeTimeout [slurm@1795949933]")
    found = why({"n1": failed}, Reason="Resources").sentence
    assert "n1 is down (DOWN+CLOUD+POWERED_DOWN: ResumeTimeout)" in found


def test_nodes_that_slurm_keeps_for_others_are_explained_by_the_others() -> None:
    reason = "ReqNodeNotAvail, May be reserved for other job"
    found = why({"n1": node()}, Ahead(1, 4, 0, ("5",)), Reason=reason, ReqNodes="n1")
    assert found.code == "ReqNodeNotAvail"
    assert found.sentence.startswith(
        "1 job of higher priority, which wants 4 CPUs, waits for batch, too; first 5"
    )
    assert found.remedies[0].startswith("wait; a shorter time limit")
    alone = why({"n1": node()}, Reason=reason, ReqNodes="n1")
    assert alone.sentence.startswith(f"Slurm reports: {reason}")

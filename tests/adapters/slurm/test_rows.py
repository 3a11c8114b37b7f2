"""Parsers of the output of squeue and scontrol."""

import pytest

from outrider_adapters.readers.slurm.record_events import first_host, hosts_of
from outrider_adapters.slurm.eligibility import has_features
from outrider_adapters.slurm.nodes import partitions_of, reserved_nodes, shown_for_s
from outrider_adapters.slurm.queue_rows import MAX_TASKS, jobs_of, row_of, trackable
from outrider_adapters.slurm.slurm_watch import is_busy
from tests.adapters.slurm.rows import line, row


def test_what_slurm_leaves_open_is_none_or_empty() -> None:
    reported = row(TimeLimit="UNLIMITED", Account="(null)", EligibleTime="N/A")
    assert (reported.limit_s, reported.vo, reported.eligible_s, reported.start_s) == (
        None,
        "staff",
        None,
        None,
    )
    assert (reported.features, reported.hosts, reported.reason, reported.reservation) == (
        "",
        "",
        "",
        "",
    )
    assert row(GroupName="(null)", Account="(null)").vo == "all"


def test_numbers_are_read_as_slurm_prints_them() -> None:
    reported = row(
        NumCPUs="2048",
        NumNodes="2-4",
        TimeLimit="2-03:00:00",
        tres_alloc="cpu=8,mem=1.5T",
    )
    assert (reported.cpus, reported.nodes, reported.limit_s) == (2048, 2, 183_600.0)
    assert reported.amount("mem") == 1.5 * 1024**2
    assert reported.amount("gres/gpu") == 0.0


@pytest.mark.parametrize(
    "broken",
    [
        "", "one field", line() + "more", line()[:-3],
        line(SubmitTime="N/A"), line(NumCPUs="many"), line(JobArrayID="7_[1-"),
        line(RestartCnt="x"), line(Reason="a\x1fb"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_refused(broken: str) -> None:
    with pytest.raises(
        ValueError, match=r"fields; expected|not a time|invalid literal|(no|range of) task"
    ):
        row_of(broken)


def test_unlike_amounts_are_left_out() -> None:
    assert trackable("cpu=2,what,mem=x,=3,gres/gpu:a100=1") == (
        ("cpu", 2.0), ("", 3.0), ("gres/gpu:a100", 1.0),
    )  # fmt: skip


def test_an_array_of_millions_is_bounded() -> None:
    assert len(jobs_of("1_[0-4000000]")) == MAX_TASKS
    assert jobs_of("1_[0-4000000]")[-1] == f"1_{MAX_TASKS - 1}"
    assert len(jobs_of("1_[" + ",".join(["0-999999999"] * 50) + "]")) == MAX_TASKS


@pytest.mark.parametrize("words", ["1_[]", "1_[a]", "[1-2]", "1_[1-2", "1_[1-2]x", "1_[1--2]"])
def test_what_names_no_tasks_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match=r"contains no tasks|not a range of tasks"):
        jobs_of(words)


def test_a_host_list_of_millions_is_bounded() -> None:
    assert len(hosts_of("n[1-9999999],m[1-9999999]", 1_000)) == 1_000
    assert len(hosts_of("a[1-9999]b[1-9999]c[1-9999]", 1_000)) == 1_000
    assert hosts_of("n[08-11]x,login") == ["n08x", "n09x", "n10x", "n11x", "login"]
    assert hosts_of("") == []
    assert first_host("n[08-11]x,login") == "n08x"


@pytest.mark.parametrize(
    ("expression", "features", "admitted"),
    [
        ("a", "a", True),
        ("a&b", "a", False),
        ("a,b", "a b", True),
        ("a|b&c", "a", False),  # from left to right
        ("a|b&c", "a c", True),
        ("(a|b)&(c|d)", "b d", True),
        ("[a|b]", "b", True),
        ("a*2&b*4", "b", True),
        ("a*2&b*4", "c", False),
    ],
)
def test_features_as_constraint_takes_them(expression: str, features: str, admitted: bool) -> None:
    assert has_features(expression, set(features.split())) is admitted


@pytest.mark.parametrize(
    "broken", ["", "&", "a&", "(a", "a)", "a b", "(" * 90 + "a", "(" * 2_000 + "a", "a&&b"]
)
def test_what_is_no_expression_of_features_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match=r"features?\b|not closed|unexpected"):
        has_features(broken, {"a", "b"})


def test_partitions_say_how_long_and_how_wide() -> None:
    shown = (
        "PartitionName=batch AllowGroups=ALL MaxNodes=4 MaxTime=1-00:00:00 MinNodes=2 State=UP\n"
        "PartitionName=down MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 State=DOWN\n\n"
    )
    reported = partitions_of(shown)
    assert set(reported) == {"batch", "down"}
    batch = reported["batch"]
    assert batch.admits(86_400.0, 2)
    assert not batch.admits(86_401.0, 2)
    assert not batch.admits(None, 2), "a job without a limit asks for more than any"
    assert not batch.admits(60.0, 1)
    assert not batch.admits(60.0, 5)
    assert not reported["down"].admits(60.0, 1)
    assert reserved_nodes("ReservationName=r1 StartTime=x Nodes=n[1-2] NodeCnt=2\n") == {
        "r1": {"n1", "n2"}
    }
    assert reserved_nodes("No reservations in the system\n") == {}


def test_a_controller_with_much_to_do_is_known() -> None:
    assert not is_busy("Server thread count:  3\nAgent queue size:     0\n")
    assert is_busy("Server thread count:  120\nAgent queue size:     0\n")
    assert is_busy("Server thread count:  3\nAgent queue size:     5000\n")
    assert not is_busy("")


def test_how_long_jobs_are_shown_after_their_end() -> None:
    assert shown_for_s({"MinJobAge": "300 sec"}) == 300.0
    assert shown_for_s({"MinJobAge": "0 sec"}) == float("inf")

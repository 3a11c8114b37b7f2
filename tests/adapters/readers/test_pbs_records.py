"""Events of the records of a PBS accounting file: alone, and in sequence."""

from typing import Any

import pytest

from outrider.api import ConfigurationError, JobSpec, NamedEvent, ReaderOptions, Reading, events
from outrider_adapters.readers.pbs import PBSAccountingReader
from outrider_adapters.readers.pbs.exits import fate_of
from outrider_adapters.readers.pbs.records import IGNORED

AT_17 = 1_795_231_020  # 2026-11-21 03:17:00 UTC
TORQUE = "user=alice group=physics owner=alice@login jobname=fit queue=long"
PBS_PRO = 'user=alice group=users account="physics" project=_pbs_project_default jobname=fit'
ALICE = JobSpec(user="alice", vo="physics", cpus=2, estimate_s=3600.0, recalled=True)


def line(second: int, letter: str, message: str = "", job: str = "7.server") -> str:
    return f"11/21/2026 03:{17 + second // 60:02d}:{second % 60:02d};{letter};{job};{message}\n"


def pairs(head: str = TORQUE, submit: int = 0, start: int | None = 10, **more: Any) -> str:
    words = [head, f"ctime={AT_17 + submit} qtime={AT_17 + submit} etime={AT_17 + submit}"]
    if start is not None:
        words.append(f"start={AT_17 + start if start else 0}")
    words.append("exec_host=n7/0+n7/1 Resource_List.walltime=01:00:00")
    return " ".join([*words, *(f"{key}={value}" for key, value in more.items())])


def ended(second: int, status: int, head: str = TORQUE, start: int = 10) -> str:
    return line(
        second, "E", pairs(head, start=start, session=4, end=AT_17 + second, Exit_status=status)
    )


def read(*lines: str, final: bool = True, **options: Any) -> Reading:
    data = "".join(lines).encode()
    reading = PBSAccountingReader(ReaderOptions(**options)).read(data, final)
    if final:
        assert reading.consumed == len(data)
        assert reading.records == reading.lines == len(data.splitlines())
    return reading


def plain(given: list[NamedEvent]) -> list[tuple[float, str, str, Any]]:
    return [
        (time_s - AT_17, events.KIND_NAMES[kind], job, extra) for time_s, kind, job, extra in given
    ]


def reported(*lines: str, **options: Any) -> list[tuple[float, str, Any]]:
    """Return the events of job 7, without its name."""
    reading = read(*lines, **options)
    assert reading.rejected == {}
    assert {event[2] for event in reading.events} <= {"7.server"}
    return [(time_s, kind, extra) for time_s, kind, _, extra in plain(reading.events)]


SUBMITTED = (0, "submitted", ALICE)
STARTED = (10, "started", ("n7", 2))


# -- one record alone -------------------------------------------------------------------------


def test_torque_says_of_a_queued_job_only_that_it_is() -> None:
    assert reported(line(0, "Q", "queue=long")) == [(0, "submitted", JobSpec(recalled=True))]


def test_pbs_pro_says_of_a_queued_job_all_and_when_it_was_made() -> None:
    message = (
        f"{PBS_PRO} queue=long ctime={AT_17} qtime={AT_17 + 40} etime={AT_17 + 40} "
        "Resource_List.ncpus=8 Resource_List.walltime=90"
    )
    spec = JobSpec(
        user="alice", vo="physics", cpus=8, estimate_s=90.0, eligible_s=float(AT_17 + 40)
    )
    assert reported(line(40, "Q", message)) == [(0, "submitted", spec)]


@pytest.mark.parametrize("head", [TORQUE, PBS_PRO])
def test_a_start_recalls_the_submission_for_a_log_that_began_later(head: str) -> None:
    assert reported(line(10, "S", pairs(head))) == [SUBMITTED, STARTED]


@pytest.mark.parametrize("head", [TORQUE, PBS_PRO])
def test_an_end_tells_a_whole_life(head: str) -> None:
    assert reported(ended(99, 0, head)) == [SUBMITTED, STARTED, (99, "completed", None)]


def test_unix_times_in_a_record_are_preferred_to_its_stamp() -> None:
    late = line(2400, "E", pairs(end=AT_17 + 99, Exit_status=0))
    assert reported(late, timezone="Asia/Tokyo")[-1] == (99, "completed", None)


@pytest.mark.parametrize(
    ("status", "head", "kind", "reason"),
    [
        (0, TORQUE, "completed", None),
        (1, TORQUE, "completed", None),
        (143, PBS_PRO, "completed", None),  # 128 + 15 is what the job's own shell returned
        (255, PBS_PRO, "completed", None),
        (265, TORQUE, "removed", "killed"),
        (271, TORQUE, "removed", "killed"),
        (271, PBS_PRO, "removed", "killed"),
        (-1, TORQUE, "removed", "failed_start"),
        (-1, PBS_PRO, "removed", "failed_start"),
        (-11, TORQUE, "removed", "killed"),
        (-29, PBS_PRO, "removed", "killed"),
        (-10, TORQUE, "removed", "killed"),
        (-10, PBS_PRO, "removed", "failed_start"),
        (-4, TORQUE, "removed", "unknown"),
        (-99, PBS_PRO, "removed", "unknown"),
        (-3, TORQUE, "evicted", "failed_start"),
        (-11, PBS_PRO, "evicted", "unknown"),
        (-20, PBS_PRO, "evicted", "unknown"),
    ],
)
def test_an_exit_status_means_what_its_batch_system_documents(
    status: int, head: str, kind: str, reason: str | None
) -> None:
    assert reported(ended(99, status, head)) == [SUBMITTED, STARTED, (99, kind, reason)]


def test_every_documented_exit_status_has_a_reason_outrider_knows() -> None:
    fates = [fate_of(status, torque) for status in range(-40, 0) for torque in (True, False)]
    assert {fate.reason for fate in fates} <= set(events.EVICTION_REASONS)
    assert all(fate.reason != "" for fate in fates)


def test_an_end_of_a_job_that_never_started_is_no_run() -> None:
    record = line(99, "E", pairs(start=0, end=AT_17 + 99, Exit_status=0))
    assert reported(record) == [SUBMITTED, (99, "removed", "failed_start")]


def test_an_end_without_a_submission_or_host_says_what_it_can() -> None:
    record = line(99, "E", f"user=alice start={AT_17 + 10} end={AT_17 + 99} Exit_status=0")
    assert reported(record) == [(10, "started", ("unknown", 1)), (99, "completed", None)]


def test_an_end_before_its_start_is_rejected() -> None:
    reading = read(line(99, "E", pairs(start=50, end=AT_17 + 40, Exit_status=0)))
    assert (reading.events, reading.rejected) == ([], {"ends_before_it_starts": 1})


@pytest.mark.parametrize("letter", IGNORED)
def test_what_is_no_event_of_a_job_is_counted_by_kind(letter: str) -> None:
    reading = read(line(0, letter, "a=b", job="R5.server"))
    assert (reading.events, reading.ignored, reading.rejected) == ([], {IGNORED[letter]: 1}, {})


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("nonsense\n", "garbage"),
        ("11/21/2026 03:17:00;E;;user=alice\n", "garbage"),
        ("11/21/2026 03:17:00;EE;7.server;\n", "garbage"),
        ("13/21/2026 03:17:00;E;7.server;\n", "date"),
        ("02/30/2026 03:17:00;E;7.server;\n", "date"),
        ("11/21/2026 03:17:00;X;7.server;\n", "unknown_record_type"),
        ("11/21/2026 03:17:00;S;7.server;ctime=yesterday\n", "date"),
        ("11/21/2026 03:17:00;E;7.server;end=99999999999999999999\n", "date"),
    ],
)
def test_what_cannot_be_read_is_counted_by_reason(record: str, reason: str) -> None:
    reading = read(record)
    assert (reading.events, reading.ignored, reading.rejected) == ([], {}, {reason: 1})


def test_suspension_and_resumption_are_events() -> None:
    lines = line(20, "z", "resources_used.ncpus=2"), line(30, "r")
    assert reported(*lines) == [(20, "suspended", None), (30, "resumed", None)]


def test_a_job_moved_to_another_server_has_left_this_ones_queue() -> None:
    assert reported(line(20, "M", "destination=far")) == [(20, "removed", "removed")]


def test_a_checkpoint_is_an_event_only_where_the_job_is_held() -> None:
    assert reported(line(20, "C")) == [(20, "held", None)]
    assert reported(line(20, "C", "Checkpointed and held")) == [(20, "held", None)]
    assert read(line(20, "C", "Checkpointed")).ignored == {"checkpoint": 1}


# -- ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", ["7.server", "7[4].server", "7-4.server", "0007.a-b.example.org"])
def test_an_id_is_kept_in_the_batch_systems_own_spelling(job: str) -> None:
    assert {event[2] for event in read(line(10, "S", pairs(), job)).events} == {job}


def test_the_parent_of_an_array_is_no_job() -> None:
    lines = [line(n, letter, pairs(), "7[].server") for n, letter in enumerate("QSERDA")]
    reading = read(*lines)
    assert (reading.events, reading.ignored) == ([], {"array_parent": 6})


# -- deletions --------------------------------------------------------------------------------


def test_a_deleted_job_that_never_ran_is_removed_when_it_was_deleted() -> None:
    assert reported(line(5, "D", "requestor=alice@login")) == [(5, "removed", "removed")]
    assert reported(line(5, "A")) == [(5, "removed", "killed")]


@pytest.mark.parametrize("status", [271, 0, -1])
def test_a_deletion_is_why_a_run_ended_and_its_end_is_the_removal(status: int) -> None:
    reading = read(line(90, "D", "requestor=alice@login"), ended(99, status))
    assert plain(reading.events)[-1] == (99, "removed", "7.server", "removed")
    assert [event[1] for event in reading.events].count(events.REMOVED) == 1
    assert reading.ignored == {"deletion_of_run": 1}


def test_a_run_that_the_server_aborts_was_killed() -> None:
    assert reported(line(90, "A"), ended(99, 271))[-1] == (99, "removed", "killed")


def test_an_abort_that_tells_the_end_is_an_end_record() -> None:
    record = line(99, "A", pairs(session=4, end=AT_17 + 99, Exit_status=0))
    assert reported(record) == [SUBMITTED, STARTED, (99, "removed", "killed")]


def test_a_deletion_asked_twice_is_one() -> None:
    reading = read(line(5, "D"), line(6, "D"), line(7, "A"))
    assert plain(reading.events) == [(5, "removed", "7.server", "removed")]
    assert reading.ignored == {"deletion_repeated": 2}


def test_a_deletion_waits_a_minute_of_the_logs_own_time_and_no_longer() -> None:
    others = [line(second, "L", "licences") for second in (20, 64, 65)]
    for count, expected in ((2, []), (3, [(5, "removed", "7.server", "removed")])):
        reader = PBSAccountingReader(ReaderOptions())
        data = "".join([line(5, "D"), *others[:count], line(65, "L")]).encode()
        reading = reader.read(data)
        assert plain(reading.events) == expected


def test_a_run_that_outlives_its_deletion_ends_where_the_removal_was_told() -> None:
    lines = line(20, "D"), line(85, "L"), ended(99, 271)
    assert reported(*lines) == [
        (20, "removed", "removed"), SUBMITTED, STARTED, (20, "removed", "removed"),
    ]  # fmt: skip


def test_a_deletion_at_the_end_of_a_file_is_not_lost() -> None:
    data = (line(0, "Q", "queue=long") + line(5, "D")).encode()
    reader = PBSAccountingReader(ReaderOptions())
    first = reader.read(data)
    assert [event[1] for event in first.events] == [events.SUBMITTED]
    assert first.consumed < len(data), "nothing left to read, and nobody would ask again"
    last = reader.read(data[first.consumed :], final=True)
    assert plain(last.events) == [(5, "removed", "7.server", "removed")]


def test_a_deletion_is_remembered_over_a_restart() -> None:
    before = PBSAccountingReader(ReaderOptions())
    assert before.read((line(90, "D") + line(91, "L") + line(92, "L")).encode()).events == []
    after = PBSAccountingReader(ReaderOptions())
    after.restore(before.save())
    reading = after.read(ended(99, 271).encode(), final=True)
    assert plain(reading.events)[-1] == (99, "removed", "7.server", "removed")


def test_what_was_deleted_long_ago_is_forgotten() -> None:
    reader = PBSAccountingReader(ReaderOptions())
    later = line(5, "D", job="8.server").replace(" 03:", " 05:")
    reader.read((line(5, "D") + later + later.replace(" 05:17", " 05:19") * 2).encode())
    assert list(reader.save()["deletions"]) == ["8.server"]


# -- reruns -----------------------------------------------------------------------------------


def test_a_rerun_is_an_eviction_and_the_job_goes_on() -> None:
    rerun = line(20, "R", pairs(PBS_PRO, end=AT_17 + 19, Exit_status=-3))
    assert reported(rerun) == [SUBMITTED, STARTED, (19, "evicted", "failed_start")]


def test_torque_says_of_a_rerun_only_that_it_is() -> None:
    assert reported(line(20, "R")) == [(20, "evicted", "unknown")]


def test_a_rerun_for_another_cause_than_a_failed_start_has_no_reason() -> None:
    rerun = line(20, "R", pairs(PBS_PRO, end=AT_17 + 19, Exit_status=-11))
    assert reported(rerun)[-1] == (19, "evicted", "unknown")


# -- whom and how much ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "vo"),
    [
        ("group=users account=physics project=p1", "physics"),
        ('group=users account="bio logy"', "bio logy"),
        ("group=users account= project=p1", "users"),
        ("group=-default- project=p1", "p1"),
        ("group=-default- project=_pbs_project_default", "all"),
        ("queue=long", "all"),
    ],
)
def test_the_vo_is_the_account_else_the_group_else_the_project(words: str, vo: str) -> None:
    assert reported(line(0, "Q", words))[0][2].vo == vo


@pytest.mark.parametrize(
    ("word", "job_class"),
    [("interactive=True", "interactive"), ("interactive=1", "interactive"),
     ("interactive=False", "batch"), ("queue=interactive", "batch")],
)  # fmt: skip
def test_a_job_is_interactive_only_if_its_record_says_so(word: str, job_class: str) -> None:
    assert reported(line(0, "Q", word))[0][2].job_class == job_class


@pytest.mark.parametrize(
    ("exec_host", "place"),
    [
        ("n7/0", ("n7", 1)),
        ("b341/2", ("b341", 1)),
        ("n7.example.org/1+n7.example.org/0", ("n7.example.org", 2)),
        ("n7/0-3", ("n7", 4)),
        ("n7/0-1+n8/0-1", ("n7", 4)),
        ("n7/0-3,8,10-11", ("n7", 7)),
        ("n7/0*8", ("n7", 8)),
        ("(n7/0*2+n8/0*2)", ("n7", 4)),
        ("node-17/3", ("node-17", 1)),
        ("node-17/0-3+node-18/5", ("node-17", 5)),
        ("n7", ("n7", 1)),
        ("node-3-8", ("node-3-8", 1)),
        ("n7/0*0", ("n7", 1)),
    ],
)
def test_a_run_is_on_its_first_host_with_the_slots_of_all(
    exec_host: str, place: tuple[str, int]
) -> None:
    record = line(10, "S", f"ctime={AT_17} start={AT_17 + 10} exec_host={exec_host}")
    assert reported(record)[1] == (10, "started", place)


@pytest.mark.parametrize(
    ("words", "cpus"),
    [
        ("Resource_List.ncpus=16", 16),
        ("Resource_List.nodes=4:ppn=16", 64),
        ("Resource_List.nodes=n7:ppn=2+n8:ppn=3", 5),
        ("Resource_List.ncpus=1 Resource_List.nodes=2:gpus=1:ppn=4", 8),
        ("Resource_List.select=2:ncpus=8:mem=1gb+1:ncpus=1", 17),
        ("Resource_List.nodes=n7", 1),
        ("Resource_List.ncpus=many", 1),
    ],
)
def test_cpus_are_those_asked_for_while_a_job_waits(words: str, cpus: int) -> None:
    assert reported(line(0, "Q", words))[0][2].cpus == cpus


@pytest.mark.parametrize(
    ("walltime", "estimate_s"),
    [("01:30:00", 5400.0), ("90", 90.0), ("2:00", 120.0), ("1:00:00:00", 86_400.0),
     ("120:00:00", 432_000.0), ("soon", None)],
)  # fmt: skip
def test_the_walltime_asked_for_is_the_estimate(walltime: str, estimate_s: float | None) -> None:
    spec = reported(line(0, "Q", f"Resource_List.walltime={walltime}"))[0][2]
    assert spec.estimate_s == estimate_s


def test_a_job_that_is_not_eligible_yet_has_no_eligible_time() -> None:
    assert reported(line(0, "Q", f"ctime={AT_17} etime=0"))[0][2].eligible_s is None


# -- clocks -----------------------------------------------------------------------------------


def test_stamps_are_utc_unless_a_zone_is_given() -> None:
    assert read(line(0, "Q")).events[0][0] == AT_17
    assert read(line(0, "Q"), timezone="Europe/Berlin").events[0][0] == AT_17 - 3600


def test_stamps_of_summer_and_winter_are_read_by_one_zone() -> None:
    summer, zone = "07/01/2026 03:17:00;Q;7.server;\n", "Europe/Berlin"
    assert read(summer).events[0][0] - read(summer, timezone=zone).events[0][0] == 2 * 3600


@pytest.mark.parametrize(
    ("stamp", "second"),
    [("03:17:00.250", 0.25), ("03:17:00Z", 0.0), ("04:17:00+01:00", 0.0), ("02:17:00-0100", 0.0)],
)
def test_a_stamp_may_have_a_fraction_or_a_zone(stamp: str, second: float) -> None:
    record = f"11/21/2026 {stamp};Q;7.server;queue=long\n"
    assert read(record, timezone="Asia/Tokyo").events[0][0] == AT_17 + second + (
        -9 * 3600 if "." in stamp else 0
    )


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r'"Mars/Base" is not known'):
        PBSAccountingReader(ReaderOptions(timezone="Mars/Base"))


def test_a_zone_that_the_records_contradict_is_warned_of_once() -> None:
    away = [line(10, "S", pairs()).replace(" 03:", " 04:")] * 2
    (warning,) = read(*away).warnings
    assert "stamped +1.0 h from its own Unix time: UTC is not the server's time zone" in warning
    assert read(*away, timezone="Europe/Berlin").warnings == []
    assert read(line(12, "S", pairs())).warnings == []

"""Names and texts from outside: printable, short, and still different."""

from typing import Any

import pytest

from outrider.api import Batch, JobSpec, MachineSpec, NamedEvent, Resources, events
from outrider.engine.ingest.bounded_names import (
    MAX_RESOURCES,
    NAME_BYTES,
    OTHER,
    NameLimits,
    Names,
    clean_event,
)
from outrider.engine.ingest.job_registry import MAX_ENDED_BYTES, JobRegistry
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.ingest.normaliser import Normaliser
from outrider.model.printable import MAX_NAME_BYTES, clean_job_name, clean_line, clean_name
from tests.fixtures.cores import T, core_of, tell

LONG = ("a" * 8_000, "\N{GRINNING FACE}" * 8_000, "\x1b[31m" * 1_000, "\u202e" * 300)


def texts(value: Any) -> list[str]:
    """All text in plain data and records."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, (tuple, list, set, frozenset)):
        return [text for part in value for text in texts(part)]
    if isinstance(value, dict):
        return texts(list(value.values()))
    fields = getattr(value, "__struct_fields__", ())
    return [text for field in fields for text in texts(getattr(value, field))]


def events_with(name: str) -> list[NamedEvent]:
    resources = Resources(named=((name, 1.0),))
    return [
        (T, events.SUBMITTED, name, JobSpec(name, name, name, eligible=name, resources=resources)),
        (T, events.CHANGED, name, {"user": name, "vo": name, "resources": resources}),
        (T, events.HELD, name, name),
        (T, events.DRAINED, name, name),
        (T, events.RELEASED, name, None),
        (T, events.STARTED, name, (name, 1, name)),
        (T, events.SUSPENDED, name, events.CPUS_GIVEN_BACK),
        (T, events.RESUMED, name, (name, 1)),
        (T, events.REMOVED, name, "removed"),
        (T, events.JOINED, name, MachineSpec(name, resources=resources)),
        (T, events.ELIGIBLE, name, (name, "m1")),
    ]


@pytest.mark.parametrize("name", LONG)
def test_every_text_of_every_event_is_short_and_printable(name: str) -> None:
    for event in events_with(name):
        clean = clean_event(event)
        for text in texts(clean):
            assert len(text.encode()) <= MAX_NAME_BYTES
            assert text.isprintable()
        assert clean_event(clean) is clean


@pytest.mark.parametrize(
    "name", ["ada", "Zoë Müller", "東京 1", "DOM\\ada", "group_a.b", "", "a" * 256, "é" * 128, "~x"]
)
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert clean_name(name) is name
    assert clean_job_name(name) is name
    for event in events_with(name):
        assert clean_event(event) is event


def test_different_names_stay_different_and_the_same_stays_the_same() -> None:
    names = [f"{'a' * 500}{n}" for n in range(2_000)]
    names += ["a\x1bb", "a\\x1bb", "a\u200bb", "ab", "a\nb", "a\ufe0fb", "a\u202eb", "\x1bab"]
    clean = [clean_name(name) for name in names]
    assert len(set(clean)) == len(names)
    assert clean == [clean_name(name) for name in names]
    assert clean == [clean_name(name) for name in clean]


@pytest.mark.parametrize("sign", ["\x1b", "\u202e", "\u200b", "\ufe0f", "\u2066", "\x85", "\ud800"])
def test_no_sign_without_width_or_of_control_is_left(sign: str) -> None:
    assert sign not in clean_name(f"a{sign}b")
    assert sign not in clean_job_name(f"a{sign}b#1.0")
    assert sign not in clean_line(f"a{sign}b")


@pytest.mark.parametrize("ending", ["#12.0", ":123_4", "#12.0#1795231020"])
def test_the_id_of_a_job_is_kept_behind_a_name_that_is_cut(ending: str) -> None:
    first, second = (clean_job_name(f"{'x' * 5_000}{n}{ending}") for n in (1, 2))
    assert first.endswith(ending)
    assert first != second
    assert len(first) <= MAX_NAME_BYTES
    assert clean_job_name(f"ap\x1b{ending}").endswith(ending)


def test_live_and_in_a_replay_a_job_has_the_same_name() -> None:
    raw = "\u202e" * 400 + "#7.0"
    core = core_of("log")
    tell(core, "log", [(T, events.SUBMITTED, raw, JobSpec(user="\x1beve"))], T + 1)
    read = Normaliser(inferred_machine)
    read.translate((T, events.SUBMITTED, raw, JobSpec(user="\x1beve")))
    [job], [again] = core.merger.normaliser.jobs.items(), read.jobs.items()
    assert (job[0], job[1].spec.user) == (again[0], again[1].spec.user)
    entry = core.entry("log", Batch(events=[], cursor=None))
    assert entry is not None
    assert all(text.isprintable() for text in texts(entry.inputs))


def test_the_names_of_a_kind_have_a_bound_in_bytes() -> None:
    names = Names(NameLimits(vo=100))
    followed = [names.vo.of(f"{n:0256}", T) for n in range(60)]
    assert followed.count(OTHER) == 60 - 100 * NAME_BYTES // 256
    assert names.vo.of("short", T) == OTHER
    restored = Names(NameLimits(vo=100))
    restored.restore(names.save())
    assert restored.vo.of("short", T) == OTHER
    assert restored.vo.of(f"{3:0256}", T) == f"{3:0256}"


def test_equal_names_of_many_jobs_are_one_object() -> None:
    names = Names()
    first, second = (
        names.spec(JobSpec(user="".join(("a", "da")), estimate_s=1.0), T) for _ in range(2)
    )
    assert first is second


def test_a_job_and_a_machine_keep_a_bounded_number_of_resources() -> None:
    resources = Resources(named=tuple((f"r{n}", 1.0) for n in range(1_000)))
    event = clean_event((T, events.JOINED, "m1", MachineSpec(resources=resources)))
    assert len(event[3].resources.named) == MAX_RESOURCES


# -- jobs beyond the bound -------------------------------------------------------------------------


def bounded(job: int) -> Normaliser:
    return Normaliser(inferred_machine, names=Names(NameLimits(job=job)))


def submit(normaliser: Normaliser, first: int, last: int, user: str = "ada") -> None:
    for n in range(first, last):
        normaliser.translate((T + n, events.SUBMITTED, f"ap#{n}.0", JobSpec(user=user)))


def test_jobs_beyond_the_bound_are_counted_and_followed_from_their_start() -> None:
    normaliser = bounded(8)
    submit(normaliser, 0, 12)
    assert normaliser.names is not None
    assert len(normaliser.jobs) == len(normaliser.names.job) == 8
    assert normaliser.names.job.folded == 4
    for kind, extra in ((events.HELD, "why"), (events.CHANGED, {"cpus": 2})):
        assert normaliser.translate((T + 20, kind, "ap#11.0", extra)) == []
    for n in (9, 10, 11):  # a quarter more may run
        normaliser.translate((T + 21, events.STARTED, f"ap#{n}.0", ("m1", 1)))
    assert [f"ap#{n}.0" in normaliser.jobs for n in (8, 9, 10, 11)] == [False, True, True, False]


def test_a_job_that_leaves_makes_room_for_another() -> None:
    normaliser = bounded(4)
    submit(normaliser, 0, 5)
    normaliser.translate((T + 10, events.REMOVED, "ap#4.0", "removed"))
    assert "ap#4.0" not in normaliser.jobs
    normaliser.translate((T + 11, events.REMOVED, "ap#0.0", "removed"))
    submit(normaliser, 20, 21)
    assert "ap#20.0" in normaliser.jobs
    again = bounded(4)
    again.restore(normaliser.save())
    submit(again, 21, 22)
    assert "ap#21.0" not in again.jobs


def test_long_names_of_jobs_lower_their_number() -> None:
    normaliser = bounded(100)
    submit(normaliser, 0, 100, user="u" * 250)
    assert 40 < len(normaliser.jobs) < 60


def test_the_site_says_that_jobs_are_only_counted() -> None:
    core = core_of("log")
    core.names.job.most = 3
    jobs: list[NamedEvent] = [(T, events.SUBMITTED, f"ap#{n}.0", JobSpec()) for n in range(5)]
    tell(core, "log", jobs, T + 1)
    [note] = [note for note in core.notes() if "in the queue" in note]
    assert note.startswith("2 jobs were submitted beyond the limit of 3 jobs in the queue")


def test_the_history_of_one_job_is_bounded() -> None:
    normaliser = bounded(4)
    submit(normaliser, 0, 1)
    for n in range(1, 4_000):
        kind = events.HELD if n % 2 else events.RELEASED
        assert normaliser.translate((T + n, kind, "ap#0.0", None))
    assert len(normaliser.jobs["ap#0.0"].pack()) < 8_192
    assert normaliser.translate((T + 3_999, events.HELD, "ap#0.0", None)) is None


def test_the_memory_of_ended_jobs_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_ENDED_BYTES <= 64 << 20
    monkeypatch.setattr("outrider.engine.ingest.job_registry.MAX_ENDED_BYTES", 10_000)
    normaliser = bounded(10)
    for n in range(500):
        submit(normaliser, n, n + 1, user="u" * 200)
        normaliser.translate((T + n, events.REMOVED, f"ap#{n}.0", "removed"))
    registry = normaliser._job_registry
    assert isinstance(registry, JobRegistry)
    assert sum(map(len, registry._ended.values())) <= 10_000


def test_the_members_of_all_classes_of_machines_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outrider.engine.ingest.machine_registry.MAX_MEMBERS", 10)
    normaliser = bounded(4)
    for turn in range(2):
        members = tuple(f"m{turn}{n}" for n in range(4))
        for name in ("a", "b"):
            assert normaliser.translate((T, events.ELIGIBLE, name, members))
    restored = bounded(4)
    restored.restore(normaliser.save())
    [(_, _, _, (name, machines, _))] = restored.translate((T, events.ELIGIBLE, "c", members)) or []
    assert (name, machines) == ("c", ())
    assert restored.names is not None
    assert restored.names.eligible.folded == 1

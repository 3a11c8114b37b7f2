"""Tests of eligible machines: HTCondor's own matching, hand-made ads, a watched pool."""

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.model.events import CHANGED, ELIGIBLE, JOINED, SUBMITTED
from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.eligibility.clauses import clause, conjuncts, demands
from outrider_adapters.htcondor.pool_calls import ClassAd, HTCondorException, PoolCalls
from tests.adapters.htcondor.watched_pool import WatchedPool

DEFAULT = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
    "(TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus)"
)
"""Requirements that condor_submit adds to a job's own."""

SLOT = """
    [Name = "slot1@m1"; Arch = "X86_64"; OpSys = "LINUX"; Cpus = 4; Memory = 4096; Disk = 90000;
     State = "Unclaimed"; KeyboardIdle = 5000; LoadAvg = 0.1; Start = true; Requirements = START]
"""
JOB = f"""
    [ClusterId = 7; ProcId = 0; Owner = "ann"; RequestCpus = 1; RequestMemory = 100;
     RequestDisk = 1000; Requirements = {DEFAULT}]
"""


class Ads:
    """A collector and a queue of hand-made ads, which answer with what they are asked for."""

    def __init__(self, slots: Sequence[str], jobs: Sequence[str]) -> None:
        self.slots = [ClassAd(text) for text in slots]
        self.jobs = [ClassAd(text) for text in jobs]
        self.asked: list[list[str]] = []
        self.watch = EligibilityWatch(PoolCalls(self, None, HTCondorException, ()), 300.0)

    def query(self, ad_type: Any, constraint: str = "", projection: list[str] = []) -> list[Any]:  # noqa: B006
        self.asked.append(projection)
        return [projected(ad, projection) for ad in self.slots]

    def classes(self, now_s: float = 0.0) -> tuple[list[str], dict[str, tuple[str, ...]]]:
        """Return the class of each job, and the reported machines of each class."""
        self.watch.look_at_slots(now_s)
        ads = self.watch.ask(
            lambda names: [projected(ad, names) for ad in self.jobs], ["ClusterId"]
        )
        names = [self.watch.class_of(ad) for ad in ads]
        return names, {event[2]: event[3] for event in self.watch.news(now_s, now_s)}

    def machines(self) -> list[tuple[str, ...]]:
        """Return the machines that each job may use."""
        names, reported = self.classes()
        return [reported[name] for name in names]


def projected(ad: Any, names: list[str]) -> Any:
    answer = ClassAd()
    answer.update({name: ad.lookup(name) for name in names if name in ad})
    return answer


def changed(ad: str, **attributes: str) -> str:
    """Return an ad with other expressions for some attributes."""
    made = ClassAd(ad)
    for name, expression in attributes.items():
        made[name] = ClassAd(f"[x = {expression}]").lookup("x")
    return str(made)


# -- expressions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "clauses"),
    [
        ("a", ["a"]),
        ("a && b", ["a", "b"]),
        ("((a && (b || c))) && d", ["a", "b || c", "d"]),
        ("a && b || c", ["a && b || c"]),
        ("a ? b && c : d", ["a ? b && c : d"]),
        ('x == "a && (b" && y', ['x == "a && (b"', "y"]),
        ('x == "\\"&&" && y', ['x == "\\"&&"', "y"]),
        ("f(a && b) && {1, 2}[0] && (c) || (d)", ["f(a && b) && {1, 2}[0] && (c) || (d)"]),
        ("(a) && (b)", ["a", "b"]),
        ("'odd && name' > 1 && b", ["'odd && name' > 1", "b"]),
    ],
)
def test_an_expression_is_taken_apart_where_all_must_hold(
    expression: str, clauses: list[str]
) -> None:
    assert conjuncts(expression) == clauses


def test_parentheses_are_opened_only_so_deep() -> None:
    assert len(conjuncts("(" * 10_000 + "a" + ")" * 10_000)) == 1


def test_demands_are_what_is_left_to_ask_of_the_other_side() -> None:
    job = changed(
        JOB,
        RequestMemory="ifThenElse(MemoryUsage isnt undefined, MemoryUsage, 256)",
        Requirements='(Memory >= RequestMemory) && MY.Owner == "ann" && (MY.Until ?: 0) <= time()',
    )
    assert list(demands(ClassAd(job), "Requirements")) == ["Memory >= 256"]
    assert list(demands(ClassAd(changed(JOB, Requirements="Owner == 1")), "Requirements")) == [
        "false"
    ]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("TARGET.Memory > 5", True),
        ("Memory > 5 && target . Memory < 7", True),
        ('Said == "TARGET.Memory"', True),
        ("MY.Memory > 5", False),  # our own side has no such attribute
        ("MY.Memory is undefined && TARGET.Memory isnt undefined", True),
        ("Nothing > 5", False),
        ("Said > 5", False),
    ],
)
def test_a_clause_is_asked_of_the_other_side_alone(text: str, holds: bool) -> None:
    other = ClassAd('[Memory = 6; Said = "TARGET.Memory"]')
    assert clause(text).holds(other) is holds


# -- matching ---------------------------------------------------------------------------------


def test_the_machines_with_a_slot_that_accepts_and_is_accepted() -> None:
    small = changed(SLOT, Name='"slot1@m2"', Memory="50")
    picky = changed(SLOT, Name='"slot1@m3"', Start='TARGET.Owner == "bob"')
    both = changed(SLOT, Name='"slot2@m2"', Memory="5000")
    ads = Ads(
        [SLOT, small, picky, both],
        [JOB, changed(JOB, Owner='"bob"'), changed(JOB, RequestCpus="9")],
    )
    assert ads.machines() == [("m1", "m2"), ("m1", "m2", "m3"), ()]


def test_a_busy_partitionable_slot_counts_whole_and_a_busy_machine_as_idle() -> None:
    busy = changed(
        SLOT, PartitionableSlot="true", Cpus="0", Memory="10", TotalSlotCpus="8",
        TotalSlotMemory="8000", Start="KeyboardIdle > 900 && TARGET.RequestCpus <= MY.Cpus",
        KeyboardIdle="3", State='"Owner"',
    )  # fmt: skip
    jobs = [changed(JOB, RequestCpus="8"), changed(JOB, RequestCpus="9")]
    assert Ads([busy], jobs).machines() == [("m1",), ()]


def test_what_a_start_expression_reads_of_jobs_is_asked_for_and_tells_kinds_apart() -> None:
    project = changed(SLOT, Start='TARGET.Project == "cms"')
    jobs = [changed(JOB, Project='"cms"'), changed(JOB, Project='"atlas"'), JOB]
    assert Ads([project], jobs).machines() == [("m1",), (), ()]


def test_what_an_attribute_of_a_job_refers_to_is_asked_for_until_nothing_is_missing() -> None:
    job = changed(JOB, RequestMemory="Needs * 2", Needs="Base + 1000", Base="1047")
    ads = Ads([SLOT], [job, changed(job, Base="1049")])
    assert ads.machines() == [("m1",), ()]


def test_jobs_that_ask_the_same_are_one_kind_whatever_else_they_say() -> None:
    jobs = [changed(JOB, ClusterId=f"{n}", ImageSize=f"{n}") for n in range(20)]
    names, reported = Ads([SLOT], jobs).classes()
    assert len(set(names)) == 1
    assert list(reported.values()) == [("m1",)]


def test_a_class_goes_by_the_same_name_after_a_restart() -> None:
    assert (
        Ads([SLOT], [JOB]).classes()[0] == Ads([SLOT, SLOT.replace("m1", "m2")], [JOB]).classes()[0]
    )


def test_it_is_told_anew_only_when_other_machines_may_be_used() -> None:
    ads = Ads([SLOT], [JOB])
    (name,), reported = ads.classes(0.0)
    assert reported == {name: ("m1",)}
    assert ads.classes(400.0) == ([name], {})
    ads.slots.append(ClassAd(SLOT.replace("m1", "m2")))
    assert ads.classes(500.0) == ([name], {}), "slots are believed for 300 s"
    assert ads.classes(900.0) == ([name], {name: ("m1", "m2")})
    del ads.slots[0]
    assert ads.classes(1300.0) == ([name], {}), "one that is gone holds nobody up"
    ads.slots[0]["Memory"] = 1
    assert ads.classes(1700.0) == ([name], {name: ()})


def test_kinds_beyond_the_bound_have_no_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outrider_adapters.htcondor.eligibility.kinds._MAX_KINDS", 3)
    names, _ = Ads([SLOT], [changed(JOB, RequestCpus=f"{n}") for n in range(1, 6)]).classes()
    assert names[3:] == ["", ""]
    assert len(set(names[:3])) == 3


def test_jobs_keep_their_classes_where_more_was_read_than_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "outrider_adapters.htcondor.eligibility.kinds"
    monkeypatch.setattr(f"{module}._MAX_SHAPES", 2)
    monkeypatch.setattr(f"{module}._MAX_NAMES", 2)
    watch = Ads([SLOT], []).watch
    watch.look_at_slots(0.0)

    def asked(jobs: list[str]) -> list[Any]:
        return list(watch.ask(lambda names: [projected(ClassAd(job), names) for job in jobs], []))

    old = asked([changed(JOB, Requirements=f"Memory > {n}") for n in range(5)])
    before = [watch.class_of(ad) for ad in old]
    new = asked([changed(JOB, Requirements=f"Cpus > {n}") for n in range(5)])
    assert all(watch.class_of(ad) for ad in new)
    assert [watch.class_of(ad) for ad in old] == before
    assert len(set(before)) == 5


def test_an_ad_that_tells_no_requirements_has_no_class_whatever_others_tell() -> None:
    ads = Ads([SLOT], [changed(JOB, Requirements="true")])
    (name,), reported = ads.classes()
    assert reported == {name: ("m1",)}
    assert ads.watch.class_of(ClassAd("[ClusterId = 7; ProcId = 0]")) == ""


def test_a_slow_look_tells_one_class_and_the_next_ones_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outrider_adapters.htcondor.eligibility.eligibility_watch._BUDGET_S", 0.0)
    ads = Ads([SLOT], [changed(JOB, RequestCpus=f"{n}") for n in (1, 2, 3)])
    names, reported = ads.classes()
    rest = [event[2] for _ in range(3) for event in ads.watch.news(0.0, 0.0)]
    assert [*reported, *rest] == names
    assert (len(reported), ads.watch.is_done) == (1, True)


def test_a_collector_that_has_said_nothing_yet_makes_no_classes() -> None:
    watch = Ads([SLOT], [JOB]).watch
    (ad,) = watch.ask(lambda names: [projected(ClassAd(JOB), names)], [])
    assert watch.class_of(ad) == ""


@pytest.mark.parametrize(
    "requirements",
    [
        " && ".join(
            f"TARGET.a{n} > {n}" for n in range(2_000)
        ),  # deeper than ClassAds are evaluated
        f'TARGET.Name != "{"x" * 1_000_000}"',
        " || ".join(f"TARGET.b{n} > {n}" for n in range(300)),
    ],
    ids=["deep", "a megabyte", "300 attributes"],
)
def test_what_a_user_makes_too_large_has_no_class_and_costs_the_others_nothing(
    requirements: str,
) -> None:
    ads = Ads([SLOT], [JOB, changed(JOB, Requirements=requirements)])
    names, reported = ads.classes()
    assert names[1] == ""
    assert reported == {names[0]: ("m1",)}
    assert max(map(len, ads.asked)) < 100


def test_what_many_junk_jobs_read_is_forgotten_with_them() -> None:
    junk = [
        changed(JOB, Requirements=" || ".join(f"TARGET.c{job}x{n} > {n}" for n in range(190)))
        for job in range(8)
    ]
    late = changed(JOB, Requirements=" && ".join(f"TARGET.d{n} is undefined" for n in range(99)))
    ads = Ads([SLOT], junk)
    names, _ = ads.classes(0.0)
    assert [bool(name) for name in names].count(True) == 5, "the bound of attributes is reached"
    ads.jobs.append(ClassAd(late))
    assert ads.classes(10.0)[0][-1] == ""
    del ads.jobs[:-1]
    for now_s in range(400, 8_000, 400):
        names, _ = ads.classes(float(now_s))
    assert names != [""]
    assert max(map(len, ads.asked[-3:])) < 250


@given(st.text(alphabet="ab\"\\\n\t&|()[]{}'.,=<>!? TARGETMYé€\x01", max_size=20))
def test_hostile_strings_match_as_they_do_in_the_pool(said: str) -> None:
    slot, job, literal = ClassAd(SLOT), ClassAd(JOB), ClassAd()
    slot["Said"] = literal["x"] = said
    quoted = str(literal.lookup("x"))
    expression = f'(TARGET.Said =?= {quoted} || Said == "a && b") && strcmp(Said, {quoted}) == 0'
    job["Requirements"] = ClassAd(f"[x = {expression}]").lookup("x")
    ads = Ads([], [])
    ads.slots, ads.jobs = [slot], [job]
    assert ads.machines() == [("m1",) if job.symmetricMatch(slot) else ()]


OF_SLOTS = {
    "Memory": ["10", "64", "2048"],
    "Cpus": ["1", "2"],
    "OpSys": ['"LINUX"', '"WINDOWS"'],
    "HasGpu": ["true", "undefined", '"yes"'],
    "Start": ["true", 'TARGET.Owner != "ann"', "RequestMemory < Memory || Boost > 1",
              "MY.Cpus > 1"],
}  # fmt: skip
OF_JOBS = {
    "Owner": ['"ann"', '"bob"'],
    "RequestMemory": ["10", "65", "2048", "ifThenElse(Boost > 1, 20, 3000)"],
    "Boost": ["0", "2", "undefined"],
    "Requirements": [
        DEFAULT, f"({DEFAULT}) && TARGET.HasGpu", "HasGpu isnt undefined || Cpus > 1", "true",
        "Memory > RequestMemory && stringListMember(OpSys, \"LINUX,MACOS\")", "TARGET.Nothing",
        "regexp(\"^slot1@m[0-4]$\", TARGET.Name) && !(HasGpu ?: false)",
    ],
}  # fmt: skip


@given(st.randoms(use_true_random=False))
def test_it_says_what_the_bindings_own_match_says(chance: random.Random) -> None:
    def some(ad: str, of: dict[str, list[str]], **more: str) -> str:
        return changed(ad, **{name: chance.choice(values) for name, values in of.items()}, **more)

    slots = [some(SLOT, OF_SLOTS, Name=f'"slot1@m{n}"') for n in range(6)]
    jobs = [some(JOB, OF_JOBS) for _ in range(6)]
    matching = {
        (j, s)
        for (j, job), (s, slot) in product(enumerate(jobs), enumerate(slots))
        if ClassAd(job).symmetricMatch(ClassAd(slot))
    }
    found = Ads(slots, jobs).machines()
    closed = {s for s, slot in enumerate(slots) if ClassAd(slot).eval("Start") is False}
    said = {(j, int(name[1:])) for j, machines in enumerate(found) for name in machines}
    assert {one for one in said if one[1] not in closed} == matching


# -- in a watched pool ------------------------------------------------------------------------


def test_a_class_is_told_before_a_job_of_it_and_after_its_machines(site: WatchedPool) -> None:
    job = site.submit(run_s=50)
    site.pool.advance(site.pool.now_s + 5)
    reported = site.look().events
    at = {kind: n for n, (_, kind, subject, _) in enumerate(reported) if kind != JOINED}
    spec = next(
        extra for _, kind, subject, extra in reported if (kind, subject) == (SUBMITTED, job)
    )
    assert at[ELIGIBLE] < at[SUBMITTED]
    assert reported[at[ELIGIBLE]][2:] == (spec.eligible, tuple(site.names))


@pytest.mark.parametrize("has_log", [True, False])
def test_an_edit_that_no_machine_meets_is_told(tmp_path: Any, has_log: bool) -> None:
    site = WatchedPool(tmp_path, has_log=has_log)
    job = site.submit(run_s=5000, hold="true")
    site.look(35)
    site.pool.schedd("alice").edit([job.rpartition("#")[2]], "RequestMemory", "1000000")
    reported = [event for after_s in (31, 31) for event in site.look(after_s).events]
    (changes,) = [
        extra for _, kind, subject, extra in reported if (kind, subject) == (CHANGED, job)
    ]
    assert (changes["eligible"], ()) in [event[2:] for event in reported if event[1] == ELIGIBLE]
    site.close()


@pytest.mark.parametrize("has_log", [True, False], ids=["event log", "queue alone"])
def test_which_machines_a_job_may_use_is_known_with_the_first_that_stands(
    tmp_path: Any, has_log: bool
) -> None:
    """Classes come first: else a policy would take all waiting jobs to fit everywhere."""
    site = WatchedPool(tmp_path, has_log=has_log)
    job = site.submit(run_s=5000, requirements='TARGET.Name == "slot1@m2"')
    watch = site.new_watch(start_now=True)
    watch.start(None)
    reported: list[Any] = []
    for _ in range(5):
        batch = watch.look()
        reported += batch.events
        if batch.standing:
            break
    assert batch.standing
    spec = next(
        extra for _, kind, subject, extra in reported if (kind, subject) == (SUBMITTED, job)
    )
    eligible = spec.eligible
    for _, kind, subject, extra in reported:
        if (kind, subject) == (CHANGED, job):
            eligible = extra["eligible"]
    assert [event[3] for event in reported if event[1:3] == (ELIGIBLE, eligible)] == [("m2",)]
    watch.close()
    site.close()

"""Sentences that users read on the page, whole and by value."""

from typing import Any

import pytest

from outrider.api import NOWHERE, Batch, Choice, JobSpec, MachineSpec, WaitingReason
from outrider.engine.accounting.report import report
from outrider.journal.job_lookup import JobEnd
from outrider.journal.records import decode_extra, encode_extra
from outrider.model.events import EVICTED, HELD, JOINED, RELEASED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import Job
from outrider.service.views.explanation import (
    explain,
    explain_from_rows,
    is_waiting,
    jobs_meant,
    states_of,
)
from outrider.service.views.job_runs import MOST_RUNS
from outrider.service.views.sentences import decision_text, is_unknown
from outrider.service.views.status import measured_ratio, sentence, status, utility
from outrider.service.views.waiting_reasons import SystemAnswer
from tests.fixtures.cores import T, core_of, run_of, tell
from tests.fixtures.small_figures import small_figures

AGREED = "would have chosen the same cluster in 100% of 3 starts"


def test_the_status_in_one_sentence() -> None:
    assert status(small_figures(), {})["sentence"] == (
        "shadow since 14 Nov 2023 22:13: 5 jobs seen, mean wait 1 s, 0.0 kWh useful and 0.0 kWh "
        f"wasted; fifo {AGREED}; lowest_watts {AGREED}; saving: not estimated yet"
    )


def test_before_anything_happened_the_sentence_promises_nothing() -> None:
    nothing = "0 jobs seen, no job started yet, 0.0 kWh useful and 0.0 kWh wasted"
    core = core_of("log")
    waits = "its last batch waits to be taken in"
    assert status(core, {})["sentence"] == f"shadow: No data yet from adapter log: {waits}"
    core.sources["log"].note_batch(Batch(events=[], cursor=None), 60.0)
    assert status(core, {})["sentence"] == (
        f"shadow since now: {nothing}; bandit has not been compared with a start yet; "
        "saving: not estimated yet"
    )
    observing = core_of("log", mode="observe")
    observing.sources["log"].note_batch(Batch(events=[], cursor=None), 60.0)
    assert status(observing, {})["sentence"] == (
        f"observe since now: {nothing}; no policy is asked; saving: not estimated yet"
    )


def test_where_watts_are_not_known_the_sentence_says_so() -> None:
    core = core_of("log", policies={"fifo": {}})
    tell(core, "log", run_of("1", T), T + 60)
    said = status(core, {})["sentence"]
    assert "energy unknown (no watts configured)" in said
    assert "kWh" not in said


@pytest.mark.parametrize(
    ("wait_s", "said"),
    [
        (59.4, "59 s"), (119.4, "119 s"), (120.0, "2.0 min"), (7_199.0, "120 min"),
        (7_200.0, "2.0 h"), (172_799.0, "48.0 h"), (172_800.0, "2.0 d"), (216_000.0, "2.5 d"),
    ],
)  # fmt: skip
def test_a_mean_wait_is_said_in_the_unit_that_fits(wait_s: float, said: str) -> None:
    core = core_of("log")
    events: list[NamedEvent] = [
        (T, SUBMITTED, "1", JobSpec()),
        (T + wait_s, STARTED, "1", ("m1", 1)),
    ]
    tell(core, "log", events, T + wait_s + 60)
    assert f"mean wait {said}," in status(core, {})["sentence"]


def test_energy_is_said_in_kilowatt_hours_with_the_part_that_was_measured() -> None:
    core = small_figures()
    figures = report(core.site, core.accounting)
    figures["energy_wh"] |= {"goodput": 1_234_567.0, "badput": 76_543.0}
    assert "1,234.6 kWh useful and 76.5 kWh wasted; " in sentence(core, figures)
    figures["energy_measured_wh"] |= {"goodput": 1_234_567.0}
    assert "76.5 kWh wasted (of it measured: 94%); " in sentence(core, figures)


def test_how_much_of_the_energy_was_measured_is_of_what_is_known() -> None:
    known: dict[str, Any] = {"goodput": 30.0, "badput": 10.0, "idle": None}
    measured = {"goodput": 20.0, "badput": 10.0, "idle": 5.0}
    figures = {"energy_wh": known, "energy_measured_wh": measured}
    assert measured_ratio(figures) == 0.75
    nothing = {"goodput": 0.0, "badput": 0.0, "idle": None}
    assert measured_ratio({"energy_wh": nothing, "energy_measured_wh": measured}) is None


UNKNOWN = "no reason of the batch system is known"


def explained(core: Any, job: str, *rows: dict[str, Any]) -> dict[str, Any]:
    told = explain(core, job, list(rows))
    assert told is not None
    return told


def test_why_a_job_waits_though_machines_are_free() -> None:
    row = {"policy": "fifo", "time_s": T + 22, "seq": 7, "scores": {"lab": 1.0}, "propensity": 0.5}
    told = explained(small_figures(), "c", row | {"seq": 3}, row)
    assert told["sentence"] == (  # there is room on o2, on m2, and on the other CPU of m1
        f"c waits: 3 machines that it may use have room for it; {UNKNOWN}. "
        "In shadow: fifo would start it on lab: the machine has been free longest; "
        "lowest_watts would start it on lab: the machine uses the least power per CPU."
    )
    assert (told["state"], told["waiting_s"], told["since_s"]) == ("queued", 78.0, T + 22)
    fifo, other = told["policies"]
    assert (fifo["action"], fifo["cluster"], fifo["decided_s"]) == ("start", "lab", T + 22)
    assert (fifo["seq"], fifo["scores"], fifo["propensity"]) == (7, {"lab": 1.0}, 0.5)
    assert (other["seq"], other["scores"], other["decided_s"]) == (None, {}, None)


def test_why_a_job_is_kept_in_the_queue_and_until_when() -> None:
    core = core_of("log", policies={"bandit": {}}, timezone="UTC", reconsider_s=1800)
    policy: Any = core.runners[0].policy
    policy.choose = lambda *asked: Choice(NOWHERE, "watts")
    told: list[NamedEvent] = [(T, JOINED, "m1", MachineSpec()), (T, SUBMITTED, "1", JobSpec())]
    tell(core, "log", told, T + 60)
    said = explained(core, "1")
    assert said["policies"][0]["until_s"] == T + 1800.0
    assert said["sentence"].endswith(
        "In shadow: bandit would keep it queued until 2023-11-14 22:43 UTC "
        "(2023-11-21 22:13 UTC at the latest): watts."
    )


def test_a_jobs_place_is_among_those_of_its_user_that_ask_for_the_same() -> None:
    core = core_of("log")
    alike = JobSpec(user="alice", cpus=2)
    told: list[NamedEvent] = [
        (T, SUBMITTED, "first", alike),
        (T + 1, SUBMITTED, "bob's", JobSpec(user="bob", cpus=2)),
        (T + 2, SUBMITTED, "larger", JobSpec(user="alice", cpus=4)),
        (T + 3, SUBMITTED, "elsewhere", JobSpec(user="alice", cpus=2, eligible="gpu")),
        (T + 4, SUBMITTED, "ran", alike),
        (T + 5, SUBMITTED, "this", alike),
        (T + 5, SUBMITTED, "with it", alike),
        (T + 6, STARTED, "ran", ("m1", 2)),
    ]
    tell(core, "log", told, T + 60)
    assert explained(core, "this")["alike"] == {"total": 3, "ahead": 1}
    assert explained(core, "with it")["alike"] == {"total": 3, "ahead": 2}
    assert explained(core, "bob's")["alike"] == {"total": 1, "ahead": 0}
    assert explained(core, "ran")["alike"] is None, "it runs"


def test_a_job_whose_submission_nobody_saw_came_before_all_others() -> None:
    core = core_of("log")
    unseen: list[NamedEvent] = [
        (T, STARTED, "found running", ("m1", 1)),
        (T + 1, EVICTED, "found running", "unknown"),
        (T + 2, SUBMITTED, "seen", JobSpec()),
    ]
    tell(core, "log", unseen, T + 60)
    assert explained(core, "found running")["alike"] == {"total": 2, "ahead": 0}
    assert explained(core, "seen")["alike"] == {"total": 2, "ahead": 1}


def test_a_running_job_is_told_with_its_machine_and_one_that_left_is_not_known() -> None:
    core = small_figures()
    told = explained(core, "b")
    assert told["sentence"] == "b is running on m1."
    assert told["waiting_s"] is None
    assert explain(core, "a", []) is None
    assert explain(core, "never seen", []) is None


def test_the_jobs_that_a_short_form_means_are_counted_by_their_state() -> None:
    core = core_of("log")
    told: list[NamedEvent] = [
        (T, SUBMITTED, f"{ap}#7.0", JobSpec()) for ap in ("ap1", "ap2", "ap3")
    ]
    told += [(T, SUBMITTED, "ap1#77.0", JobSpec()), (T + 1, STARTED, "ap1#7.0", ("m1", 1))]
    tell(core, "log", told, T + 60)
    meant = jobs_meant(core, "7.0")
    assert sorted(meant) == ["ap1#7.0", "ap2#7.0", "ap3#7.0"]
    assert list(states_of(core, [*meant, "ap4#7.0"]).items()) == [
        ("queued", 2), ("running", 1), ("left", 1),
    ]  # fmt: skip
    assert [is_waiting(core, job) for job in ("ap1#7.0", "ap2#7.0", "ap4#7.0")] == [
        False, True, False,
    ]  # fmt: skip


def test_a_held_job_is_told_with_what_the_batch_system_says_until_it_is_released() -> None:
    core = core_of("log", policies={"fifo": {}})
    why = "Error from slot1@m1: failed to send file(s)"
    tell(core, "log", [(T, SUBMITTED, "1", JobSpec()), (T + 1, HELD, "1", why)], T + 2)
    told = explained(core, "1")
    assert (told["sentence"], told["held_because"]) == (f"1 is held: {why}.", why)
    tell(core, "log", [(T + 3, RELEASED, "1", None)], T + 4)
    assert explained(core, "1")["held_because"] is None
    tell(core, "log", [(T + 5, HELD, "1", None)], T + 6)
    told = explained(core, "1")
    assert (told["sentence"], told["held_because"]) == (f"1 is held; {UNKNOWN}.", None)


def test_why_a_job_is_held_outlives_a_restart_by_journal_and_by_snapshot() -> None:
    assert decode_extra(HELD, encode_extra(HELD, "no such file")) == "no such file"
    assert decode_extra(HELD, encode_extra(HELD, None)) is None
    job = Job(1, JobSpec(), 0.0, held_because="no such file")
    assert Job.restore(job.save()).held_because == "no such file"


def test_policies_that_wait_for_a_machine_share_a_line() -> None:
    core = core_of("log", policies={"fifo": {}, "sjf": {}, "best_fit": {}})
    events: list[NamedEvent] = [
        (T, JOINED, "m1", MachineSpec("lab", 1)),
        (T + 1, SUBMITTED, "1", JobSpec()),
        (T + 2, STARTED, "1", ("m1", 1)),
        (T + 3, SUBMITTED, "2", JobSpec()),
    ]
    tell(core, "log", events, T + 60)
    told = explained(core, "2")
    assert told["policy_lines"] == ["fifo, sjf, best_fit: no free machine can take it"]
    assert told["sentence"].count("no free machine") == 1


def test_a_reason_that_says_that_the_job_waits_is_not_said_to_wait_twice() -> None:
    core = core_of("log")
    tell(core, "log", [(T, SUBMITTED, "5", JobSpec())], T + 1)
    reason = WaitingReason("Dependency", "it waits for other jobs: 4")
    told = explain(core, "5", [], SystemAnswer("slurm", reason))
    assert told is not None
    assert told["cause"] == "5 waits for other jobs: 4."


def test_who_waits_for_a_machine_and_who_fits_on_none_is_told_apart() -> None:
    core = core_of("log", policies={"fifo": {}})
    events: list[NamedEvent] = [
        (T, JOINED, "m1", MachineSpec("lab", 2)),
        (T + 1, SUBMITTED, "1", JobSpec(cpus=2)),
        (T + 2, STARTED, "1", ("m1", 2)),
        (T + 3, SUBMITTED, "2", JobSpec(cpus=2)),
        (T + 4, SUBMITTED, "3", JobSpec(cpus=64)),
    ]
    tell(core, "log", events, T + 60)
    assert explained(core, "2")["sentence"] == (
        f"2 waits: no machine that it may use has room for it now; {UNKNOWN}. In shadow: fifo: "
        "no free machine can take it."
    )
    assert explained(core, "3")["sentence"] == (
        f"3 waits: the 1 machine that it may use is not large enough for it; {UNKNOWN}. "
        "In shadow: fifo: no machine of this site can take it."
    )
    withheld = explain(core, "3", [], withheld=True)
    assert withheld is not None
    assert withheld["cause"].endswith("for it; the batch system's own reason is withheld.")


def test_a_job_that_left_is_told_from_the_last_of_its_rows() -> None:
    core = small_figures()
    rows = [
        {"policy": "fifo", "action": "defer", "reason": "no_machine"},
        {"policy": "bandit", "action": "start", "reason": "best"},
    ]
    told = explain_from_rows(core.config, "9.0", rows)
    assert told["sentence"] == (
        "9.0 is not in the queue any more. When last asked, bandit would start it: "
        "this choice has worked best so far."
    )
    assert (told["state"], told["source"], told["decisions"]) == (None, "ledger", rows)


@pytest.mark.parametrize(
    ("lost_because", "said"),
    [
        (["owner", None], "it completed on m2 after 2 runs"),
        ([None], "it completed on m1 after one run"),
        (["owner", "x"], "it had 2 runs, the last on m2 (ended: x)"),
        (["owner"] * MOST_RUNS, "it had at least 20 runs, the last on m20 (evicted: the owner"),
    ],
)
def test_a_job_that_left_is_told_from_its_runs(lost_because: list[str | None], said: str) -> None:
    core = small_figures()
    runs = [{"machine": f"m{n}", "lost_because": w} for n, w in enumerate(lost_because, 1)]
    told = explain_from_rows(core.config, "9.0", [], runs)
    assert told["sentence"].startswith(f"9.0 is not in the queue any more: {said}")
    assert told["runs"] == runs
    assert told["left"] is None
    row = {"policy": "fifo", "action": "defer", "reason": "no_machine"}
    both = explain_from_rows(core.config, "9.0", [row], runs)["sentence"]
    assert said in both
    assert both.endswith(". When last asked, fifo found that no free machine can take it.")


@pytest.mark.parametrize(
    ("end", "lost_because", "said"),
    [
        (JobEnd(T, "completed", ""), ["owner", None],
         "it completed at 14 Nov 22:13:20 on m2 after 2 runs"),
        (JobEnd(T, "completed", ""), [], "it completed at 14 Nov 22:13:20"),
        (JobEnd(T, "removed", "removed"), [],
         "it was removed at 14 Nov 22:13:20, and no run of it is known"),
        (JobEnd(T, "removed", "removed"), ["owner"],
         ("it was removed at 14 Nov 22:13:20 after one run, the last on m1 "
          "(evicted: the owner of the machine returned)")),
        (JobEnd(T, "removed", "killed"), [None, "killed"],
         "it was killed at 14 Nov 22:13:20 after 2 runs, the last on m2 (killed)"),
        (JobEnd(T, "removed", "failed_start"), [],
         "it left at 14 Nov 22:13:20 (failed to start), and no run of it is known"),
    ],
)  # fmt: skip
def test_how_a_job_left_is_told_before_how_its_last_run_ended(
    end: JobEnd, lost_because: list[str | None], said: str
) -> None:
    core = small_figures()
    runs = [{"machine": f"m{n}", "lost_because": w} for n, w in enumerate(lost_because, 1)]
    told = explain_from_rows(core.config, "9.0", [], runs, end)
    assert told["sentence"] == f"9.0 is not in the queue any more: {said}."
    assert told["left"] == {"how": end.kind, "at_s": T, "reason": end.reason or None}


@pytest.mark.parametrize(
    ("mode", "gate", "text"),
    [
        ("shadow", "would", "p would keep it queued: waiting has worked best so far"),
        ("canary", "act", "p kept it queued: waiting has worked best so far"),
        ("active", None, "p kept it queued: waiting has worked best so far"),
        ("canary", "would", "p would keep it queued: waiting has worked best so far"),
        ("active", "refused: budget",
         ("p would keep it queued: waiting has worked best so far "
          "(refused: the limit of starts per minute is reached)")),
    ],
)  # fmt: skip
def test_a_decision_that_the_gate_did_not_pass_is_not_said_to_be_done(
    mode: str, gate: str | None, text: str
) -> None:
    row = {"policy": "p", "action": "defer", "reason": "hold", "machine": None}
    assert decision_text({**row, "mode": mode, "gate": gate}) == text


def test_before_any_data_nothing_is_known_and_with_one_adapter_something() -> None:
    core = core_of("log", "pool")
    assert is_unknown(status(core, {}))
    tell(core, "log", run_of("1", T), T + 60)
    said = status(core, {})
    assert not is_unknown(said)
    assert [gap["adapter"] for gap in said["no_data"]] == ["pool"]
    assert utility(core).site_utility.free_machines is None, "the other may have some"
    assert not is_unknown({"adapters": [{"label": "log"}]}), "an older daemon"

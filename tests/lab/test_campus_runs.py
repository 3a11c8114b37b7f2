"""Runs on a campus: reproducible on any worker, with errors that name the run."""

import gc
import pickle
from pathlib import Path

import msgspec
import pytest

from outrider.engine import Engine
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import write_campus
from outrider.model.errors import ConfigurationError
from outrider.replay.trials import Terms, Trial, run_trial
from outrider_lab.running.campus_run import campus_spec, run_on_campus
from outrider_lab.running.run_all import execute_run, run_all
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import CampusFolder, GeneratedCampus, WorkloadFile

SMALL = GeneratedCampus(3, (("weeks", 1.5), ("machines", 25), ("clusters", 3)))
RANDOM = PolicySpec("random_match")
FIVE_HOURS = PolicySpec("watts_hold", (("hold_after_h", 5.0),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> CampusFolder:
    """The small campus as a folder."""
    place = tmp_path_factory.mktemp("campus")
    write_campus(SMALL.load(), place)
    return CampusFolder(str(place))


def test_a_process_holds_the_engine_of_one_run_and_not_those_of_all_before() -> None:
    gc.collect()
    before = sum(isinstance(thing, Engine) for thing in gc.get_objects())
    gc.disable()
    try:
        for seed in range(4):
            execute_run(campus_spec(SMALL, RANDOM, seed))
        after = sum(isinstance(thing, Engine) for thing in gc.get_objects())
    finally:
        gc.enable()
    assert after - before <= 1


def test_a_run_is_what_outrider_replay_runs(folder: CampusFolder) -> None:
    """Sampling the totals on the way changes no decision and no figure."""
    campus: Campus = folder.load()
    ran = run_on_campus(campus_spec(folder, FIVE_HOURS, seed=2))
    terms = Terms({"watts_hold": {"hold_after_h": 5.0}}, {"watts_hold": None})
    replayed = run_trial(Trial("x", "watts_hold", 2, None), campus, terms)
    assert ran["ledger_sha256"] == replayed["ledger_sha256"]
    for name in ("jobs", "energy_wh", "overhead_s", "evictions", "starts", "settings", "defer_s"):
        assert ran[name] == replayed[name], name
    assert ran["trace"] == folder.path


def test_the_same_specs_give_the_same_results_in_any_order_and_number_of_processes(
    folder: CampusFolder,
) -> None:
    policies = (RANDOM, PolicySpec("lowest_watts"))
    specs = [campus_spec(t, p, seed=1) for t in (SMALL, folder) for p in policies]

    def hashes(order: list[RunSpec], workers: int) -> dict[str, str]:
        ends = run_all(order, workers)
        assert [end.spec for end in ends] == order
        return {end.spec.key: end.result["ledger_sha256"] for end in ends}

    alone = {spec.key: run_on_campus(spec)["ledger_sha256"] for spec in specs}
    assert hashes(specs, 2) == alone
    assert hashes(specs[::-1], 1) == alone
    assert len(set(alone.values())) == 2, "a written campus is the campus it was written from"


def test_another_seed_is_another_run() -> None:
    specs = [campus_spec(SMALL, RANDOM, seed) for seed in (1, 2)]
    first, second = (run_on_campus(spec)["ledger_sha256"] for spec in specs)
    assert first != second
    assert specs[0].key != specs[1].key


def test_the_decision_epoch_in_force_is_told_for_every_policy() -> None:
    assert run_on_campus(campus_spec(SMALL, RANDOM))["reconsider_s"] == 3600.0


def test_a_spec_names_itself_travels_and_is_known_again() -> None:
    spec = campus_spec(SMALL, PolicySpec.of("bandit", {"epsilon": 0.05}, "literal"), 4)
    assert str(spec) == (
        "bandit literal epsilon=0.05, seed 4, on generated-3 weeks=1.5 machines=25 clusters=3"
    )
    assert pickle.loads(pickle.dumps(spec)) == spec
    read = msgspec.json.decode(msgspec.json.encode(spec), type=RunSpec)
    assert read.key == spec.key


def test_whatever_determines_a_run_is_in_its_key() -> None:
    spec = campus_spec(SMALL, PolicySpec("bandit", (("max_defer_s", None),)), 4)
    others = [
        msgspec.structs.replace(spec, seed=5),
        msgspec.structs.replace(spec, work="elsewhere:run"),
        msgspec.structs.replace(spec, options=(("estimates", "exact"),)),
        msgspec.structs.replace(spec, trace=GeneratedCampus(4, SMALL.options)),
        msgspec.structs.replace(spec, trace=WorkloadFile("generated-3", digest="a")),
        msgspec.structs.replace(spec, trace=WorkloadFile("generated-3", digest="b")),
        msgspec.structs.replace(
            spec, policy=PolicySpec("bandit", (("max_defer_s", float("inf")),))
        ),
        msgspec.structs.replace(spec, policy=PolicySpec("bandit", (("max_defer_s", None),), "x")),
    ]
    assert len({one.key for one in (spec, *others)}) == 1 + len(others)


def test_a_failed_run_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    nowhere = CampusFolder(str(tmp_path / "nowhere"))
    specs = [
        campus_spec(SMALL, RANDOM),
        campus_spec(nowhere, RANDOM),
        campus_spec(SMALL, PolicySpec("lowest_wats")),
    ]
    ends = run_all(specs, 2)
    assert [end.error is None for end in ends] == [True, False, False]
    assert str(tmp_path / "nowhere") in (ends[1].error or "")
    assert 'did you mean "lowest_watts"' in (ends[2].error or "")


def test_a_wrong_setting_is_told_with_the_run_that_asks_for_it() -> None:
    with pytest.raises(ConfigurationError, match=r"watts_hold holdafter=3, seed 0.*hold_after_h"):
        campus_spec(SMALL, PolicySpec("watts_hold", (("holdafter", 3),))).make_policy()


def test_a_run_on_a_campus_needs_a_campus() -> None:
    with pytest.raises(TypeError, match="WorkloadFile, and no campus"):
        run_on_campus(RunSpec("x:y", WorkloadFile("a.swf"), RANDOM))

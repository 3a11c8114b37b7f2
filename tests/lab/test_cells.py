"""A cell: the same run wherever and beside whatever it runs, and errors that name it."""

import pickle
from pathlib import Path

import pytest

from outrider.cli.trials import Terms, Trial, run_trial
from outrider.formats.campus.files import write_campus
from outrider.lab.cells import CampusFolder, Cell, GeneratedCampus, check_cells, run_cell
from outrider.lab.workers import side_by_side
from outrider.model.errors import ConfigurationError, PluginError

SMALL = GeneratedCampus(3, (("weeks", 1.5), ("machines", 25), ("clusters", 3)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> CampusFolder:
    place = tmp_path_factory.mktemp("campus")
    write_campus(SMALL.load(), place)
    return CampusFolder(str(place))


def test_a_cell_is_what_outrider_replay_runs(folder: CampusFolder) -> None:
    """Sampling the totals on the way changes no decision and no figure."""
    campus = folder.load()
    ran = run_cell(Cell(folder, "watts_hold", {"hold_after_h": 5.0}, seed=2))
    terms = Terms({"watts_hold": {"hold_after_h": 5.0}}, {"watts_hold": None})
    replayed = run_trial(Trial("x", "watts_hold", 2, None), campus, terms)
    assert ran["ledger_sha256"] == replayed["ledger_sha256"]
    for name in ("jobs", "energy_wh", "overhead_s", "evictions", "starts", "settings", "defer_s"):
        assert ran[name] == replayed[name], name
    assert ran["trace"] == folder.path


def test_the_same_cells_give_the_same_rows_in_any_order_and_number_of_processes(
    folder: CampusFolder,
) -> None:
    cells = [Cell(t, p, seed=1) for t in (SMALL, folder) for p in ("random_match", "lowest_watts")]

    def hashes(order: list[Cell], workers: int) -> dict[str, str]:
        ends = side_by_side(order, run_cell, workers, lambda cell: cell.trace)
        return {str(order[end.number]): end.result["ledger_sha256"] for end in ends}

    alone = {str(cell): run_cell(cell)["ledger_sha256"] for cell in cells}
    assert hashes(cells, 2) == alone
    assert hashes(cells[::-1], 1) == alone
    assert len(set(alone.values())) == 2, "a written campus is the campus it was written from"


def test_another_seed_is_another_run() -> None:
    runs = [run_cell(Cell(SMALL, "random_match", seed=seed)) for seed in (1, 2)]
    assert runs[0]["ledger_sha256"] != runs[1]["ledger_sha256"]


def test_the_decision_epoch_in_force_is_told_for_every_policy() -> None:
    assert run_cell(Cell(SMALL, "random_match"))["reconsider_s"] == 3600.0


def test_a_cell_names_itself_and_travels() -> None:
    cell = Cell(SMALL, "bandit", {"epsilon": 0.05}, "literal", 4)
    assert str(cell) == (
        "bandit literal epsilon=0.05, seed 4, on generated-3 weeks=1.5 machines=25 clusters=3"
    )
    assert pickle.loads(pickle.dumps(cell)) == cell


def test_a_failed_cell_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    nowhere = CampusFolder(str(tmp_path / "nowhere"))
    cells = [Cell(SMALL, "random_match"), Cell(nowhere, "random_match"), Cell(SMALL, "lowest_wats")]
    ends = sorted(side_by_side(cells, run_cell, 2), key=lambda end: end.number)
    assert [end.error is None for end in ends] == [True, False, False]
    assert str(tmp_path / "nowhere") in (ends[1].error or "")
    assert 'did you mean "lowest_watts"' in (ends[2].error or "")


def test_what_is_wrong_is_refused_before_anything_runs() -> None:
    with pytest.raises(PluginError, match="lowest_watts"):
        check_cells([Cell(SMALL, "lowest_wats")])
    with pytest.raises(ConfigurationError, match=r"watts_hold holdafter=3, seed 0.*hold_after_h"):
        check_cells([Cell(SMALL, "watts_hold", {"holdafter": 3})])
    with pytest.raises(ConfigurationError, match="no cells"):
        check_cells([])

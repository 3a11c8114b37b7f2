"""The notebook runs from its first to its last cell, and is committed without outputs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.python_api.notebooks import cells_of, run

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples/notebook").glob("*.ipynb"))


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Use Matplotlib without a screen."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as pyplot

    yield pyplot
    pyplot.close("all")


def test_there_is_one() -> None:
    assert [notebook.name for notebook in NOTEBOOKS] == ["from-a-trace-to-a-figure.ipynb"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_no_outputs_are_committed(notebook: Path) -> None:
    for cell in cells_of(notebook):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], f"{notebook.name}: cell {cell['id']} has outputs"
            assert cell["execution_count"] is None, f"{notebook.name}: cell {cell['id']} was run"


def test_it_goes_from_a_trace_to_a_figure(
    pyplot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space, shown = run(NOTEBOOKS[0])
    assert shown["trace"] == (1500, 20, "queue:interactive")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(
        space["policies"]
    )
    assert shown["columns"]["sjf"] < shown["columns"]["fifo"], "the text says that most gain"
    curves = space["axes"].get_lines()
    assert [curve.get_label() for curve in curves] == ["fifo", "sjf", "wfp3"]
    assert all(len(curve.get_xdata()) == 1500 for curve in curves)
    mean_s = float(curves[1].get_xdata().mean()) * 60
    assert mean_s == pytest.approx(space["runs"]["sjf"].wait_s["all"]["mean"])
    sjf, fifo = (space["waits_min"][name].max() for name in ("sjf", "fifo"))
    assert sjf > fifo, "the text says that somebody pays"
    picture = tmp_path / "waits.png"
    assert pyplot.imread(picture).std() > 0.01

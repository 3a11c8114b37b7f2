"""Sweep files: the grid they define, and errors with the place and the value."""

import gzip
from pathlib import Path

import pytest

from outrider.formats.campus.files import write_campus
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.simulation.generators.campus import generate_campus
from outrider_lab.running.dask_workers import ClusterSettings
from outrider_lab.running.traces import CampusFolder
from outrider_lab.sweep.file import read_sweep
from tests.docs.pages import blocks
from tests.fixtures.workload_files import file_of, row
from tests.lab.swept import ONE_TRACE, SMALL, SMALL_CELLS, write_sweep

EXAMPLES = Path(__file__).parents[2] / "examples" / "sweep"
FIFO = '[[policies]]\nname = "fifo"\n'


def test_the_grid_holds_every_combination_once(tmp_path: Path) -> None:
    specs = read_sweep(write_sweep(tmp_path)).specs
    points = [
        (s.trace.name[:11], s.policy.policy, dict(s.policy.settings).get("epsilon"), s.seed)
        for s in specs
    ]
    assert points[:7] == [
        ("generated-1", "random_match", None, 0),
        ("generated-1", "random_match", None, 1),
        ("generated-1", "bandit", 0.05, 0),
        ("generated-1", "bandit", 0.05, 1),
        ("generated-1", "bandit", 0.2, 0),
        ("generated-1", "bandit", 0.2, 1),
        ("generated-2", "random_match", None, 0),
    ]
    assert len(set(points)) == len(points) == SMALL_CELLS


def test_settings_and_presets_multiply(tmp_path: Path) -> None:
    table = '[[policies]]\nname = "bandit"\npreset = ["literal", "least_energy"]\n'
    settings = "settings = { sigma = [0.1, 0.2, 0.3], epsilon = 0.5 }\n"
    specs = read_sweep(write_sweep(tmp_path, ONE_TRACE + table + settings)).specs
    policies = [spec.policy for spec in specs]
    assert [(one.preset, dict(one.settings)["sigma"]) for one in policies] == [
        (preset, sigma) for preset in ("literal", "least_energy") for sigma in (0.1, 0.2, 0.3)
    ]
    assert {dict(one.settings)["epsilon"] for one in policies} == {0.5}


def test_a_run_keeps_its_key_when_the_sweep_grows(tmp_path: Path) -> None:
    before = {spec.key for spec in read_sweep(write_sweep(tmp_path)).specs}
    grown = read_sweep(write_sweep(tmp_path, SMALL.replace("[0, 1]", "[0, 1, 2]"))).specs
    assert len(before) == SMALL_CELLS
    assert before < {spec.key for spec in grown}


def test_a_folder_is_found_beside_the_file_and_its_runs_have_other_keys_when_it_changes(
    tmp_path: Path,
) -> None:
    campus = tmp_path / "traces" / "campus"
    write_campus(generate_campus(1, weeks=1, machines=20, clusters=2), campus, gz=True)
    file = write_sweep(tmp_path, '[[traces]]\nfolder = "traces/campus"\n' + FIFO)
    (before,) = read_sweep(file).specs
    assert before.trace.name == "traces/campus"
    assert isinstance(before.trace, CampusFolder)
    assert before.trace.path == str(campus)
    assert read_sweep(file).specs == [before]
    write_campus(generate_campus(2, weeks=1, machines=20, clusters=2), campus, gz=True)
    (after,) = read_sweep(file).specs
    assert after.key != before.key


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.name)
def test_the_examples_are_accepted(file: Path) -> None:
    assert len(read_sweep(file).specs) > 1


def test_the_sweep_that_the_page_shows_has_as_many_runs_as_it_says(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    grid, _ = (block.text for block in blocks(docs / "sweeps.md", "toml"))
    (cluster,) = (block.text for block in blocks(docs / "sweeps-on-a-cluster.md", "toml"))
    write_campus(generate_campus(1, weeks=1, machines=20, clusters=2), tmp_path / "campus")
    sweep = read_sweep(write_sweep(tmp_path, grid + cluster))
    assert len(sweep.specs) == 40
    assert sweep.cluster.arguments("slurm")["walltime"] == "04:00:00"


def test_the_workloads_that_the_page_shows_are_accepted(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "sweeps.md"
    _, workloads = (block.text for block in blocks(page, "toml"))
    for name in ("kth.swf", "ctc.swf"):
        rows = (row(n, n * 86_400, 60, 2, time_asked=300, group=1) for n in range(1, 45))
        plain = file_of(tmp_path, *rows, name=name)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
    specs = read_sweep(write_sweep(tmp_path, workloads + FIFO)).specs
    assert len(specs) == 2 * 2 * 2 * 2 * 2 * 2, "files, windows, and the four axes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("traces = 1\n", "traces"),
        ("[[traces]\n", "not valid TOML"),
        (FIFO, '"traces" is missing: expected a list of tables'),
        (ONE_TRACE, 'as in policies = [{ name = "bandit" }]'),
        (ONE_TRACE + FIFO + "[clusters]\n", 'unknown setting "clusters"; did you mean "cluster"?'),
        ("[[traces]]\nweeks = 1\n" + FIFO, "[[traces]] 1: expected either folder"),
        (ONE_TRACE + "weaks = 1\n" + FIFO, 'unknown setting "weaks"; did you mean "weeks"?'),
        (
            ONE_TRACE.replace("clusters = 2", "clusters = 30") + FIFO,
            "clusters = 30 is more than machines = 20",
        ),
        (ONE_TRACE.replace("[1]", "[-1]") + FIFO, '[[traces]] 1: "generated", entry 1 = -1'),
        ('[[traces]]\nfolder = "away"\n' + FIFO, "away is no campus folder: it has no site.toml"),
        (ONE_TRACE + '[[policies]]\nname = "fifa"\n', 'unknown policy "fifa"; did you mean "fifo"'),
        (ONE_TRACE + FIFO + FIFO, "the run fifo, seed 0, on generated-1"),
        (ONE_TRACE + FIFO + "preset = []\n", "[[policies]] 1: preset = [] leaves no run"),
        (ONE_TRACE + FIFO + "settings.x = 1\n", 'unknown setting "x"'),
        (
            ONE_TRACE + '[[policies]]\nname = "bandit"\nsettings.epsilon = [0.5, 7]\n',
            "bandit epsilon=7, seed 0",
        ),
        ("seeds = []\n" + ONE_TRACE + FIFO, "seeds"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    file = write_sweep(tmp_path, text)
    with pytest.raises(OutriderError) as refused:
        read_sweep(file)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(file))


def test_a_setting_of_jobs_that_the_system_has_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="walltime: htcondor has no such setting"):
        ClusterSettings(walltime="01:00:00").arguments("htcondor")
    with pytest.raises(ConfigurationError, match="disk: slurm has no such setting"):
        ClusterSettings(disk="1 GB").arguments("slurm")
    with pytest.raises(ConfigurationError, match="for pbs expected a list of lines"):
        ClusterSettings(directives={"universe": "vanilla"}).arguments("pbs")

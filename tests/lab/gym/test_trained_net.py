"""A net is trained with numpy alone, written, and run as any policy: in replay, and in shadow."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

import outrider
from outrider.formats.workload import Workload
from outrider_lab.gym import ENV_ID
from outrider_policies.window_net import fresh_net, net_of_text, write_net
from tests.cli.running import outrider as command
from tests.lab.gym.episodes import play
from tests.service.running.small_site import LOG_TABLE, SmallSite

pytestmark = pytest.mark.slow

WINDOW = 16
ITERATIONS = 10
JUDGED = range(20, 26)


def busy_grid(seed: int) -> Workload:
    """Return 80 jobs on 4 machines, more than these can run together."""
    return outrider.generate_grid(seed, row=0.4, jobs=80, machines=4, load=1.3)


@pytest.fixture(scope="module")
def example(repository: Path) -> ModuleType:
    """The example that trains with numpy, as a module."""
    path = repository / "examples" / "gymnasium" / "train_with_numpy.py"
    spec = importlib.util.spec_from_file_location("train_with_numpy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def nets(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of the net before and after a training."""
    folder = tmp_path_factory.mktemp("nets")
    net = fresh_net(WINDOW, (8,), np.random.default_rng(4))
    write_net(net, folder / "before.json", {})
    with gymnasium.make(ENV_ID, trace=busy_grid, window=WINDOW, estimates="lognormal:0.5") as env:
        returns = example.train(env, net, ITERATIONS, seed=4, episodes_n=6, rate=0.05)
    assert len(returns) == ITERATIONS
    write_net(net, folder / "after.json", {"iterations": ITERATIONS})
    return folder / "before.json", folder / "after.json"


def slowdown(seed: int, policy: str, **settings: str) -> float:
    run = outrider.replay(
        busy_grid(seed), policy=policy, settings=settings, estimates="lognormal:0.5", seed=seed
    )
    mean: float = run.bounded_slowdown["all"]["mean"]
    return mean


def test_a_training_improves_on_what_it_began_with(nets: tuple[Path, Path]) -> None:
    """Check on unseen grids, with seeds below those of training."""
    before, after = (
        np.mean([slowdown(seed, "window_net", weights=str(file)) for seed in JUDGED])
        for file in nets
    )
    assert after < before
    assert after < np.mean([slowdown(seed, "fifo") for seed in JUDGED])


def test_the_policy_decides_in_replay_as_the_net_did_in_the_environment(
    nets: tuple[Path, Path],
) -> None:
    net = net_of_text(nets[1].read_bytes(), "after.json")
    for discipline in ("strict", "easy"):
        trace = outrider.generate_grid(3, like="vengerov", rate=0.15, length_s=500)
        env = gymnasium.make(ENV_ID, trace=trace, window=WINDOW, discipline=discipline)
        played = play(env, lambda seen, jobs_n: int(net.scores(seen[:jobs_n]).argmax()))
        run = outrider.replay(
            trace, policy="window_net", settings={"weights": str(nets[1])}, discipline=discipline
        )
        assert run.ledger_sha256 == played.run["ledger_sha256"]


def test_the_command_replays_with_it_and_explain_tells_its_scores(
    nets: tuple[Path, Path], tmp_path: Path
) -> None:
    trace, ledger = tmp_path / "grid.swf", tmp_path / "ledger.sqlite"
    words = ("--row", 0.4, "--jobs", 80, "--machines", 4, "--load", 1.3, "--seed", 20)
    assert command("generate", "grid", *words, "--out", trace).code == 0
    done = command(
        "replay", trace, "--policy", "window_net", "--set", f"window_net.weights={nets[1]}",
        "--estimates", "lognormal:0.5", "--ledger", ledger, "--json",
    )  # fmt: skip
    (run,) = done.json()["runs"]
    assert run["settings"]["weights"] == str(nets[1])
    assert run["jobs"]["completed"] == 80
    scored = [
        row for row in _rows(ledger) if row["scores"] and len(row["scores"]) > 1
    ]  # where there was a choice
    told = command("explain", scored[0]["job"], "--ledger", ledger, "--json").json()
    (policy,) = told["policies"]
    assert policy["name"] == "window_net"
    assert policy["scores"] == scored[0]["scores"]


def _rows(ledger: Path) -> list[dict[str, Any]]:
    exported = command("ledger", ledger, "--export", "jsonl").out
    return [json.loads(line) for line in exported.splitlines()]


def test_a_daemon_runs_it_in_shadow_and_explains_a_job_by_it(
    nets: tuple[Path, Path], tmp_path: Path
) -> None:
    table = f'[policies.window_net]\nweights = "{nets[1]}"\n'
    site = SmallSite(tmp_path, tables=LOG_TABLE + table)
    site.log.run(range(1, 10))
    with site.daemon as daemon:
        site.wait_until_applied()
        for number in (10, 11, 12):
            site.log.submit(number)
        site.wait_until_applied()
        (policy,) = daemon.get("/api/v1/explain/11.0")["policies"]
        assert policy["name"] == "window_net"
        assert policy["action"] in ("start", "defer")
        assert policy["explanation"].startswith("its score is ")
        assert "oldest jobs that waited" in policy["explanation"]
        assert daemon.stop() == 0


def test_a_broken_file_ends_the_replay_with_its_place(tmp_path: Path) -> None:
    trace, weights = tmp_path / "grid.swf", tmp_path / "net.json"
    words = ("--row", 0.4, "--jobs", 20, "--machines", 4, "--seed", 1)
    assert command("generate", "grid", *words, "--out", trace).code == 0
    weights.write_text('{"kind": "outrider.window_net", "version": 1}')
    done = command(
        "replay", trace, "--policy", "window_net", "--set", f"window_net.weights={weights}"
    )
    assert done.code == 2
    assert f'weights = "{weights}" is no file of weights' in done.err
    assert "missing required field `window`" in done.err


def test_the_example_runs_as_a_program_and_writes_a_net(repository: Path, tmp_path: Path) -> None:
    program = repository / "examples" / "gymnasium" / "train_with_numpy.py"
    words = ("--out", str(tmp_path / "net.json"), "--iterations", "1", "--episodes", "2")
    done = subprocess.run(
        [sys.executable, program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "mean return" in done.stdout
    assert net_of_text((tmp_path / "net.json").read_bytes(), "net.json").window == 32


def test_its_gradient_is_that_of_what_it_says(example: ModuleType) -> None:
    """Against finite differences of the mean log odds times advantage."""
    rng = np.random.default_rng(0)
    net = fresh_net(4, (3,), rng)
    episodes = [
        example.Steps([rng.random((n, 9)) for n in (2, 3, 4)], [0, 2, 1], rng.random(3).tolist())
        for _ in range(2)
    ]
    weight = example.advantages(episodes)

    def gain() -> float:
        told = []
        for steps in episodes:
            for rows, row in zip(steps.rows, steps.chosen, strict=True):
                scores = net.scores(rows)
                told.append(scores[row] - np.log(np.exp(scores).sum()))
        return float((np.array(told) * weight).mean())

    parts = [part for layer in net.layers for part in layer]
    for part, slope in zip(parts, example.gradient(net, episodes), strict=True):
        for at in np.ndindex(part.shape):
            kept, part[at] = part[at], part[at] + 1e-6
            above = gain()
            part[at] = kept - 1e-6
            below = gain()
            part[at] = kept
            assert slope[at] == pytest.approx((above - below) / 2e-6, abs=1e-7)

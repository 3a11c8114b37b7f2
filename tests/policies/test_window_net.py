"""``window_net``: files of weights, what is selected, and what it says of that."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outrider
from outrider.api import NOWHERE, WINDOW_FEATURES, ConfigurationError
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.replay.run import keep_nothing
from outrider.simulation.estimates import estimate_rule, estimated
from outrider_policies.window_net import Net, WindowNet, fresh_net, net_of_text, write_net
from outrider_policies.window_net.policy import Layer, WindowNetSettings

FEATURES_N = len(WINDOW_FEATURES)


def ordered_by(feature: str, factor: float, window: int = 1024) -> Net:
    """A net whose score is one feature times a factor."""
    weights = np.zeros((FEATURES_N, 1))
    weights[WINDOW_FEATURES.index(feature)] = factor
    return Net(window, (Layer(weights, np.zeros(1)),))


def written(net: Net, path: Path) -> Path:
    write_net(net, path, {"by": "hand"})
    return path


def test_a_net_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    net = fresh_net(16, (5, 3), np.random.default_rng(1))
    again = net_of_text(written(net, tmp_path / "net.json").read_bytes(), "net.json")
    rows = np.random.default_rng(2).random((7, FEATURES_N))
    assert again.window == 16
    assert np.array_equal(again.scores(rows), net.scores(rows))
    assert net.scores(rows[::-1]).tolist() == pytest.approx(net.scores(rows)[::-1].tolist())


def test_a_net_that_prefers_short_requests_is_sjf(tmp_path: Path) -> None:
    trace = outrider.generate_grid(1, row=0.4, jobs=150, machines=6)
    weights = written(ordered_by("estimate", -1.0), tmp_path / "net.json")
    run = outrider.replay(trace, policy="window_net", settings={"weights": str(weights)})
    assert run.ledger_sha256 == outrider.replay(trace, policy="sjf").ledger_sha256
    assert run.settings == {"weights": str(weights)}


def test_of_equal_scores_the_oldest_comes_first(tmp_path: Path) -> None:
    trace = outrider.generate_grid(1, row=0.4, jobs=150, machines=6)
    weights = written(ordered_by("estimate", 0.0), tmp_path / "net.json")
    run = outrider.replay(trace, policy="window_net", settings={"weights": str(weights)})
    assert run.ledger_sha256 == outrider.replay(trace, policy="fifo").ledger_sha256


def test_the_shipped_net_decides_without_settings() -> None:
    trace = outrider.generate_grid(1, row=0.4, jobs=150, machines=6)
    run = outrider.replay(trace, policy="window_net", estimates="lognormal:0.5")
    assert run.jobs["completed"] == 150


def content(**changed: Any) -> bytes:
    layers = [{"weights": [[0.0]] * FEATURES_N, "bias": [0.0]}]
    right = {
        "kind": "outrider.window_net", "version": 1, "window": 8,
        "features": list(WINDOW_FEATURES), "layers": layers, "trained": {},
    }  # fmt: skip
    return json.dumps({**right, **changed}).encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is no file of weights: Input data was truncated"),
        (b"\x80\x03torch", "is no file of weights: .*; expected a file that .*write_net"),
        (content()[:-30], "is no file of weights"),
        (content(kind="sarsa"), r"Invalid enum value 'sarsa' - at `\$.kind`"),
        (content(version=2), r"Invalid enum value 2 - at `\$.version`"),
        (content(window=1), r"Expected `int` >= 2 - at `\$.window`"),
        (content(more=1), "unknown field `more`"),
        (
            content(features=["wait"]),
            "was trained on the features wait; .* has to be trained again",
        ),
        (content(layers=[]), r"Expected `array` of length >= 1 - at `\$.layers`"),
        (
            content(layers=[{"weights": [["a"]], "bias": [0.0]}]),
            r"Expected `float`, got `str` - at `\$.layers\[0\].weights",
        ),
        (
            content(layers=[{"weights": [[0.0, 1.0]] * FEATURES_N, "bias": [0.0]}]),
            rf"layers\[0\] has {FEATURES_N} rows of \[2\] weights .* {FEATURES_N} rows of 1, and",
        ),
        (
            content(layers=[{"weights": [[0.0]] * 3, "bias": [0.0]}]),
            r"layers\[0\] has 3 rows of \[1\] weights",
        ),
        (
            content().replace(b"[0.0], [0.0]", b"[1e999], [0.0]", 1),
            "finite|out of range|is no file of weights",
        ),
    ],
)
def test_a_broken_file_is_told_with_its_place_and_what_would_be_right(
    tmp_path: Path, text: bytes, message: str
) -> None:
    file = tmp_path / "net.json"
    file.write_bytes(text)
    with pytest.raises(ConfigurationError, match=message) as raised:
        make_policy("window_net", {"weights": str(file)}, 0, "--set window_net")
    assert str(raised.value).startswith(f'--set window_net: weights = "{file}"')


@pytest.mark.parametrize("name", ["none/there.json", "nul\0l"])
def test_a_file_that_cannot_be_read_is_told(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r'cannot be read: .* expected "shipped"'):
        make_policy("window_net", {"weights": name}, 0, "--set window_net")


def test_a_net_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_net(ordered_by("wait", 1.0), tmp_path / "none" / "net.json", {})


def test_it_says_who_is_first_and_what_speaks_for_and_against_a_job(tmp_path: Path) -> None:
    trace = outrider.generate_grid(1, row=0.4, jobs=150, machines=6)
    trace = estimated(trace, estimate_rule("exact"), 0)
    weights = written(ordered_by("estimate", -1.0), tmp_path / "net.json")
    policy = WindowNet(WindowNetSettings(str(weights)), random.Random(0))
    run, first, others, unasked = GridRun(trace, [policy], keep_nothing), "", set[str](), set[str]()
    for _ in run.stream():
        for job in run.site.jobs.values():
            said = policy.explain(job, run.site)
            assert said == policy.explain(job, run.site)
            if job.machine != NOWHERE:
                continue
            if "the highest of" in said:
                first = first or said
            elif "had a higher one" in said:
                others.add(said)
            else:
                unasked.add(said)
    assert (
        "oldest jobs that waited: it was tried first; largest gain by its estimated run time"
        in first
    )
    assert any("first was" in said and "largest loss by its estimated run time" in said
               for said in others)  # fmt: skip
    assert all("has not selected with this one among them yet" in said for said in unasked)

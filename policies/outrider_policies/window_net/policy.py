"""Policy ``window_net``: of the oldest waiting jobs the one of the highest score is next."""

import random
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import (
    WINDOW_FEATURES,
    Choice,
    ConfigurationError,
    Job,
    Observation,
    PolicySettings,
    SiteView,
    WindowPolicy,
)

# -- net -------------------------------------------------------------------------------------------
# The net: one score for each job of a window, by the same small perceptron for every row.

Floats: TypeAlias = NDArray[np.float64]


class Layer(NamedTuple):
    """Layer of the net: `weights` (inputs, outputs) and `bias` (outputs,)."""

    weights: Floats
    bias: Floats


class Net(NamedTuple):
    """Neural net that scores the rows of a window; the highest score is selected.

    A kernel that all rows share, as in Zhang et al., "RLScheduler: an automated HPC batch job
    scheduler using reinforcement learning", SC 2020: so the order of the rows, and how many there
    are, makes no difference to a job's score. Hidden units are hyperbolic tangents.

    Attributes:
        window: rows that it was trained on.
        layers: from the features to one score.
    """

    window: int
    layers: tuple[Layer, ...]

    def scores(self, rows: NDArray[np.floating]) -> Floats:
        """Return (n,) the score of each row of an observation (n, features)."""
        return self.activations(rows)[-1][:, 0]

    def activations(self, rows: NDArray[np.floating]) -> list[Floats]:
        """Return the input of each layer, and at the end the scores (n, 1); for training."""
        values: Floats = np.asarray(rows, dtype=np.float64)
        found = [values]
        for number, layer in enumerate(self.layers, 1):
            values = values @ layer.weights + layer.bias
            if number < len(self.layers):
                values = np.tanh(values)
            found.append(values)
        return found


def fresh_net(window: int, hidden: Sequence[int], rng: np.random.Generator) -> Net:
    """Return an untrained net: weights uniform within 1 / sqrt(inputs), bias 0.

    Args:
        window: rows that it will be trained on.
        hidden: units of each hidden layer.
        rng: draws the weights.
    """
    sizes = [len(WINDOW_FEATURES), *hidden, 1]
    layers = []
    for inputs, outputs in pairwise(sizes):
        bound = inputs**-0.5
        layers.append(Layer(rng.uniform(-bound, bound, (inputs, outputs)), np.zeros(outputs)))
    return Net(window, tuple(layers))


# -- policy ----------------------------------------------------------------------------------------

SHIPPED: Final = "shipped"
_SHIPPED_FILE: Final = "shipped_net.json"


class WindowNetSettings(PolicySettings, frozen=True):
    """Settings that select the net."""

    weights: Annotated[
        str,
        Meta(
            description="The net: `shipped` (trained on small generated grids of one-CPU jobs), or "
            "a file that another training wrote."
        ),
    ] = SHIPPED


class Selection(NamedTuple):
    """Last selection: the jobs, their rows as the net saw them, and its scores."""

    jobs: list[Job]
    rows: NDArray[np.float32]
    scores: NDArray[np.float64]


class WindowNet(WindowPolicy[WindowNetSettings]):
    """Policy that runs a net trained in an environment for reinforcement learning.

    It learns nothing here: a learner that explores is unsuitable for a site. It needs numpy alone,
    regardless of what it was trained with (docs/gymnasium.md).
    """

    name = "window_net"
    description = "a trained net selects the next job among the oldest that wait"
    api_version = 1

    def __init__(self, settings: WindowNetSettings, rng: random.Random) -> None:
        self._net = _net_of(settings.weights)
        super().__init__(settings, rng, self._net.window)
        self._last: Selection | None = None

    def select(self, jobs: list[Job], observation: Observation) -> int:
        """Return the row of the highest score, of equals the oldest."""
        rows = observation[: len(jobs)]
        scores = self._net.scores(rows)
        self._last = Selection(jobs, rows, scores)
        return int(scores.argmax())

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose like `WindowPolicy.choose`, and add the scores of the best few."""
        choice = super().choose(job, evaluation, view, may_defer)
        if not self.wants_scores or self._last is None or job not in self._last.jobs:
            return choice
        scores = best_few(job, self._last.jobs, self._last.scores)
        return Choice(choice.machine, choice.reason, choice.propensity, scores)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe its score and position, which job is first, and what raises or lowers it."""
        last = self._last
        if last is None or job not in last.jobs:
            return (
                f"the net selects among the {self.window} oldest jobs that wait, whenever a CPU is "
                "free and two or more wait; it has not selected with this one among them yet"
            )
        return why(last.jobs.index(job), last.jobs, last.rows, last.scores, self._net)


def _net_of(weights: str) -> Net:
    """Return the net that a setting names. Raises `ConfigurationError`."""
    where = f'weights = "{weights}"'
    if weights == SHIPPED:
        text = resources.files(__package__).joinpath(_SHIPPED_FILE).read_bytes()
    else:
        try:
            text = Path(weights).read_bytes()
        except (OSError, ValueError) as error:
            why_not = error.strerror if isinstance(error, OSError) else error
            raise ConfigurationError(
                f'{where} cannot be read: {why_not}; expected "{SHIPPED}", or a file that '
                "outrider_policies.window_net.write_net wrote"
            ) from error
    return net_of_text(text, where)


# -- explanations ----------------------------------------------------------------------------------
# Why a job is selected or not: its score, its position, and what counts most.

_SHOWN: Final = 4
_WORDS: Final = {
    "wait": "its wait", "estimate": "its estimated run time",
    "estimate_known": "whether it has an estimate", "cpus": "its CPUs",
    "fits_now": "whether it fits now", "interactive": "its class",
}  # fmt: skip
"""Descriptions of the features in which jobs of one window differ."""


def label(job: Job) -> str:
    """Return a label of a job: ``batch physics 12 min``, ``x4`` for four CPUs."""
    spec = job.spec
    length = "of unknown length" if spec.estimate_s is None else f"{spec.estimate_s / 60:.3g} min"
    wide = f" x{spec.cpus}" if spec.cpus > 1 else ""
    return f"{spec.job_class} {spec.vo} {length}{wide}"


def best_few(job: Job, jobs: Sequence[Job], scores: NDArray[np.float64]) -> dict[str, float]:
    """Return the scores of a job and of the best few of a window, by label."""
    by_label = {label(job): float(scores[jobs.index(job)])}
    for row in np.argsort(-scores, kind="stable")[:_SHOWN].tolist():
        by_label.setdefault(label(jobs[row]), float(scores[row]))
    return by_label


def why(
    row: int, jobs: Sequence[Job], rows: NDArray[np.float32], scores: NDArray[np.float64], net: Net
) -> str:
    """Describe a job in one sentence, as it was when the net last selected.

    Args:
        row: the job's row.
        jobs: the jobs of the window.
        rows: their features as the net saw them.
        scores: the net's scores.
        net: the net.
    """
    first, before = int(scores.argmax()), int((scores > scores[row]).sum())
    of_all = f"of the {len(jobs)} oldest jobs that waited"
    if row == first:
        text = f"its score is {scores[row]:.2f}, the highest {of_all}: it was tried first"
    else:
        text = (
            f"its score is {scores[row]:.2f}; {before} {of_all} had a higher one; first was "
            f"{label(jobs[first])} ({scores[first]:.2f})"
        )
    reasons = _what_counts(row, rows, net)
    return f"{text}; {reasons}" if reasons else text


def _what_counts(row: int, rows: NDArray[np.float32], net: Net) -> str:
    """Describe which feature raises its score most, and which lowers it, against the mean."""
    of_job = rows[row].astype(np.float64)
    names = list(_WORDS)
    columns = [WINDOW_FEATURES.index(name) for name in names]
    others = np.tile(of_job, (len(names), 1))
    others[np.arange(len(names)), columns] = rows[:, columns].mean(axis=0)
    gains = net.scores(of_job[np.newaxis])[0] - net.scores(others)
    highest, lowest = int(gains.argmax()), int(gains.argmin())
    parts = []
    if gains[highest] > 0.0:
        parts.append(f"largest gain by {_WORDS[names[highest]]} ({gains[highest]:+.2f})")
    if gains[lowest] < 0.0:
        parts.append(f"largest loss by {_WORDS[names[lowest]]} ({gains[lowest]:+.2f})")
    return ", ".join(parts)


# -- weights file ----------------------------------------------------------------------------------
# Files of weights: JSON that a training writes and the policy reads. No code is in them.

_EXPECTED: Final = "expected a file that outrider_policies.window_net.write_net wrote"


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    weights: list[list[float]]
    bias: list[float]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """Content of a file of weights; `trained` describes the training, for people."""

    kind: Literal["outrider.window_net"]
    version: Literal[1]
    window: Annotated[int, Meta(ge=2, le=4096)]
    features: list[str]
    layers: Annotated[list[_Layer], Meta(min_length=1)]
    trained: dict[str, Any] = {}


def write_net(net: Net, path: Path, trained: Mapping[str, Any]) -> None:
    """Write a net to a file.

    Args:
        net: the trained net.
        path: the file.
        trained: how it was trained, as plain data.

    Raises:
        ConfigurationError: it cannot be written.
    """
    layers = [_Layer(layer.weights.tolist(), layer.bias.tolist()) for layer in net.layers]
    content = _File(
        "outrider.window_net", 1, net.window, list(WINDOW_FEATURES), layers, dict(trained)
    )
    try:
        path.write_bytes(msgspec.json.encode(content) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from error


def net_of_text(text: bytes, where: str) -> Net:
    """Return the net of a file's content.

    Args:
        text: the content.
        where: names the file in errors.

    Raises:
        ConfigurationError: it is no such file, was trained on other features, or its weights do
            not fit each other. The message names place, value and what is expected.
    """
    try:
        content = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{where} is no file of weights: {error}; {_EXPECTED}") from error
    if tuple(content.features) != WINDOW_FEATURES:
        raise ConfigurationError(
            f"{where} was trained on the features {', '.join(content.features)}; this Outrider has "
            f"{', '.join(WINDOW_FEATURES)}, so it has to be trained again"
        )
    inputs, layers = len(WINDOW_FEATURES), []
    for number, layer in enumerate(content.layers):
        outputs = 1 if number == len(content.layers) - 1 else len(layer.bias)
        layers.append(_checked(layer, inputs, outputs, f"{where}: layers[{number}]"))
        inputs = outputs
    return Net(content.window, tuple(layers))


def _checked(layer: _Layer, inputs: int, outputs: int, where: str) -> Layer:
    rows = sorted({len(row) for row in layer.weights})
    if len(layer.weights) != inputs or rows != [outputs] or len(layer.bias) != outputs:
        raise ConfigurationError(
            f"{where} has {len(layer.weights)} rows of {rows} weights and a bias of "
            f"{len(layer.bias)}; expected {inputs} rows of {outputs}, and a bias of {outputs}"
        )
    weights, bias = np.array(layer.weights), np.array(layer.bias)
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise ConfigurationError(f"{where} has a weight that is not finite; {_EXPECTED}")
    return Layer(weights, bias)

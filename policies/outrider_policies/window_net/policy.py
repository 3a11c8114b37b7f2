"""Policy ``window_net``: the job of the highest score among the oldest that wait comes next."""

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
    """One layer: `weights` (inputs, outputs) and `bias` (outputs,)."""

    weights: Floats
    bias: Floats


class Net(NamedTuple):
    """Scores the rows of a window; the row of the highest score is selected.

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
        """(n,) the score of each row of an observation (n, features)."""
        return self.activations(rows)[-1][:, 0]

    def activations(self, rows: NDArray[np.floating]) -> list[Floats]:
        """What each layer is given, and at the end the scores (n, 1); for training."""
        values: Floats = np.asarray(rows, dtype=np.float64)
        found = [values]
        for number, layer in enumerate(self.layers, 1):
            values = values @ layer.weights + layer.bias
            if number < len(self.layers):
                values = np.tanh(values)
            found.append(values)
        return found


def fresh_net(window: int, hidden: Sequence[int], rng: np.random.Generator) -> Net:
    """A net that has learned nothing: weights uniform within 1 / sqrt(inputs), bias 0.

    Args:
        window: rows that it will be trained on.
        hidden: units of each hidden layer.
        rng: draws the weights.
    """
    sizes = [len(WINDOW_FEATURES), *hidden, 1]
    layers = []
    for inputs, outputs in pairwise(sizes):
        most = inputs**-0.5
        layers.append(Layer(rng.uniform(-most, most, (inputs, outputs)), np.zeros(outputs)))
    return Net(window, tuple(layers))


# -- policy ----------------------------------------------------------------------------------------

SHIPPED: Final = "shipped"
_SHIPPED_FILE: Final = "shipped_net.json"


class WindowNetSettings(PolicySettings, frozen=True):
    """Which net decides."""

    weights: Annotated[
        str,
        Meta(
            description="The net: `shipped` (trained on small generated grids of one-CPU jobs), or "
            "a file that a training of one's own wrote."
        ),
    ] = SHIPPED


class Selection(NamedTuple):
    """What was last selected from: the jobs, what the net saw of them, and its scores."""

    jobs: list[Job]
    rows: NDArray[np.float32]
    scores: NDArray[np.float64]


class WindowNet(WindowPolicy[WindowNetSettings]):
    """A net that was trained in an environment for reinforcement learning runs as a policy.

    It learns nothing here: a learner that explores is no matter for a site. It needs numpy alone,
    whatever it was trained with (docs/gymnasium.md).
    """

    name = "window_net"
    description = "a trained net selects the next job among the oldest that wait"
    api_version = 1

    def __init__(self, settings: WindowNetSettings, rng: random.Random) -> None:
        self._net = _net_of(settings.weights)
        super().__init__(settings, rng, self._net.window)
        self._last: Selection | None = None

    def select(self, jobs: list[Job], observation: Observation) -> int:
        """The row of the highest score, of equals the oldest."""
        rows = observation[: len(jobs)]
        scores = self._net.scores(rows)
        self._last = Selection(jobs, rows, scores)
        return int(scores.argmax())

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """As `WindowPolicy.choose`, with the scores of the best few."""
        choice = super().choose(job, evaluation, view, may_defer)
        if not self.wants_scores or self._last is None or job not in self._last.jobs:
            return choice
        scores = best_few(job, self._last.jobs, self._last.scores)
        return Choice(choice.machine, choice.reason, choice.propensity, scores)

    def explain(self, job: Job, view: SiteView) -> str:
        """Its score and place, which job is first, and what of it speaks for and against it."""
        last = self._last
        if last is None or job not in last.jobs:
            return (
                f"the net selects among the {self.window} oldest jobs that wait, whenever a CPU is "
                "free and two or more wait; it has not selected with this one among them yet"
            )
        return why(last.jobs.index(job), last.jobs, last.rows, last.scores, self._net)


def _net_of(weights: str) -> Net:
    """The net that a setting names. Raises `ConfigurationError`."""
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
# Why a job is selected, or is not: its score, its place, and what of it counts most.

_SHOWN: Final = 4
_WORDS: Final = {
    "wait": "its wait", "estimate": "its estimated run time",
    "estimate_known": "whether it has an estimate", "cpus": "its CPUs",
    "fits_now": "whether it fits now", "interactive": "its class",
}  # fmt: skip
"""Of the features in which jobs of one window differ."""


def label(job: Job) -> str:
    """What a job looks like: ``batch physics 12 min``, ``x4`` for four CPUs."""
    spec = job.spec
    length = "of unknown length" if spec.estimate_s is None else f"{spec.estimate_s / 60:.3g} min"
    wide = f" x{spec.cpus}" if spec.cpus > 1 else ""
    return f"{spec.job_class} {spec.vo} {length}{wide}"


def best_few(job: Job, jobs: Sequence[Job], scores: NDArray[np.float64]) -> dict[str, float]:
    """Scores of a job and of the best few of a window, by label."""
    by_label = {label(job): float(scores[jobs.index(job)])}
    for row in np.argsort(-scores, kind="stable")[:_SHOWN].tolist():
        by_label.setdefault(label(jobs[row]), float(scores[row]))
    return by_label


def why(
    row: int, jobs: Sequence[Job], rows: NDArray[np.float32], scores: NDArray[np.float64], net: Net
) -> str:
    """One sentence about the job of a row, as it was when the net last selected.

    Args:
        row: of the job.
        jobs: of the window.
        rows: what the net saw of them.
        scores: what it made of that.
        net: the net.
    """
    first, before = int(scores.argmax()), int((scores > scores[row]).sum())
    of_all = f"of the {len(jobs)} oldest jobs that waited"
    if row == first:
        text = f"score {scores[row]:.2f}, the highest {of_all}: it was tried first"
    else:
        text = (
            f"score {scores[row]:.2f}; {before} {of_all} had more; first was "
            f"{label(jobs[first])} ({scores[first]:.2f})"
        )
    told = _what_counts(row, rows, net)
    return f"{text}; {told}" if told else text


def _what_counts(row: int, rows: NDArray[np.float32], net: Net) -> str:
    """Return which feature raises its score most, and which lowers it, against the mean of the window."""
    of_job = rows[row].astype(np.float64)
    names = list(_WORDS)
    columns = [WINDOW_FEATURES.index(name) for name in names]
    others = np.tile(of_job, (len(names), 1))
    others[np.arange(len(names)), columns] = rows[:, columns].mean(axis=0)
    gains = net.scores(of_job[np.newaxis])[0] - net.scores(others)
    most, least = int(gains.argmax()), int(gains.argmin())
    parts = []
    if gains[most] > 0.0:
        parts.append(f"{_WORDS[names[most]]} speaks most for it ({gains[most]:+.2f})")
    if gains[least] < 0.0:
        parts.append(f"{_WORDS[names[least]]} most against it ({gains[least]:+.2f})")
    return ", ".join(parts)


# -- weights file ----------------------------------------------------------------------------------
# Files of weights: JSON that a training writes and the policy reads. No code is in them.

_RIGHT: Final = "expected a file that outrider_policies.window_net.write_net wrote"


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    weights: list[list[float]]
    bias: list[float]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file; `trained` says where it comes from, and is for people."""

    kind: Literal["outrider.window_net"]
    version: Literal[1]
    window: Annotated[int, Meta(ge=2, le=4096)]
    features: list[str]
    layers: Annotated[list[_Layer], Meta(min_length=1)]
    trained: dict[str, Any] = {}


def write_net(net: Net, path: Path, trained: Mapping[str, Any]) -> None:
    """Write a net.

    Args:
        net: what was trained.
        path: of the file.
        trained: how, as plain data.

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
    """The net of a file's content.

    Args:
        text: of the file.
        where: names the file in errors.

    Raises:
        ConfigurationError: it is no such file, was trained on other features, or its weights do
            not fit each other; the message names place, value and what would be right.
    """
    try:
        told = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{where} is no file of weights: {error}; {_RIGHT}") from error
    if tuple(told.features) != WINDOW_FEATURES:
        raise ConfigurationError(
            f"{where} was trained on the features {', '.join(told.features)}; this Outrider has "
            f"{', '.join(WINDOW_FEATURES)}, so it has to be trained anew"
        )
    inputs, layers = len(WINDOW_FEATURES), []
    for number, layer in enumerate(told.layers):
        outputs = 1 if number == len(told.layers) - 1 else len(layer.bias)
        layers.append(_checked(layer, inputs, outputs, f"{where}: layers[{number}]"))
        inputs = outputs
    return Net(told.window, tuple(layers))


def _checked(layer: _Layer, inputs: int, outputs: int, where: str) -> Layer:
    rows = sorted({len(row) for row in layer.weights})
    if len(layer.weights) != inputs or rows != [outputs] or len(layer.bias) != outputs:
        raise ConfigurationError(
            f"{where} has {len(layer.weights)} rows of {rows} weights and a bias of "
            f"{len(layer.bias)}; expected {inputs} rows of {outputs}, and a bias of {outputs}"
        )
    weights, bias = np.array(layer.weights), np.array(layer.bias)
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise ConfigurationError(f"{where} has a weight that is not finite; {_RIGHT}")
    return Layer(weights, bias)

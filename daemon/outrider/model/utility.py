"""Time utility functions: the utility of completing a job, by its turnaround.

Jensen's time utility functions (TUF), as Perez et al. 2008 (section IV.A) and Vengerov 2005
(section 5) use them. Each maps the turnaround (completion less submission) and the ideal run time
of a job, both in seconds, to its *unit utility*: 1 for a user who could not be served better, 0
for one who has no use for it any more. Both arguments may be arrays of one shape.

A site declares one for each job class by its ``shape`` and the settings below; a shape of your own
is a record with a ``unit`` method under the entry point ``outrider.utilities``.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from outrider.model.errors import ConfigurationError, nearest
from outrider.model.settings import Place, build, place_text, shown_value

Seconds: TypeAlias = float | NDArray[np.float64]

_HOUR_S: Final = 3600.0

Positive = Annotated[float, Meta(gt=0.0)]


class TimeUtility(Protocol):
    """The unit utility of completing a job."""

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """Utility in [0, 1], in the shape of the arguments (0-dimensional for two numbers)."""
        ...


class Constant(Struct, frozen=True):
    """Best effort: always 1."""

    shape: ClassVar[str] = "constant"

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """Return the constant utility 1."""
        return np.ones_like(np.asarray(turnaround_s, dtype=float))


class Step(Struct, frozen=True):
    """Hard deadline: 1 until it, 0 after it. The deadline is the ideal run time plus a slack."""

    shape: ClassVar[str] = "step"
    slack_s: Annotated[float, Meta(ge=0.0, description="Seconds after the ideal run time.")] = 60.0

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """Return 1 up to the deadline, else 0."""
        late_s = np.asarray(turnaround_s, dtype=float) - ideal_s - self.slack_s
        return np.where(late_s <= 0.0, 1.0, 0.0)


class Soft(Struct, frozen=True):
    """Soft deadline: 1 until it, then falling linearly to 0."""

    shape: ClassVar[str] = "soft"
    slack_s: Annotated[float, Meta(ge=0.0, description="Seconds after the ideal run time.")] = 60.0
    fade_s: Annotated[float, Meta(gt=0.0, description="Seconds from 1 down to 0.")] = 600.0

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """1 until the deadline; 0 from `fade_s` after it."""
        late_s = np.asarray(turnaround_s, dtype=float) - ideal_s - self.slack_s
        return np.clip(1.0 - late_s / self.fade_s, 0.0, 1.0)


class Interactive(Struct, frozen=True):
    """Perez et al. 2008, equation 2: after the deadline, exponentially down with wall-clock time.

    The deadline is the run time and `startup_s`. `alpha_per_h` is per hour: the paper gives no
    unit, and per minute learners collapse (an hour-long wait would be worth e^-30).
    """

    shape: ClassVar[str] = "interactive"
    alpha_per_h: Annotated[float, Meta(gt=0.0, description="Rate of decay per hour.")] = 0.5
    startup_s: Annotated[float, Meta(ge=0.0, description="Start-up time every job has.")] = 60.0

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """1 until the deadline."""
        late_s = np.asarray(turnaround_s, dtype=float) - ideal_s - self.startup_s
        return np.exp(-self.alpha_per_h / _HOUR_S * np.maximum(late_s, 0.0))


class Batch(Struct, frozen=True):
    """Perez et al. 2008, equation 3: after the deadline, a power law in deadlines."""

    shape: ClassVar[str] = "batch"
    beta: Annotated[float, Meta(gt=0.0, description="Exponent: .3 halves it at ten deadlines.")] = (
        0.3
    )
    startup_s: Annotated[float, Meta(ge=0.0, description="Start-up time every job has.")] = 60.0

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """1 until the deadline, the run time and `startup_s`."""
        deadlines = np.asarray(turnaround_s, dtype=float) / (
            np.maximum(ideal_s, 0.0) + max(self.startup_s, 1e-9)
        )
        return np.power(np.maximum(deadlines, 1.0), -self.beta)


class Linear(Struct, frozen=True):
    """Vengerov 2005, figure 1: 1 until the ideal run time, 0 at `zero_at` times it.

    `power` 1 is the paper's linear case, 2 its convex one (f squared), 1/2 its concave one.
    """

    shape: ClassVar[str] = "linear"
    zero_at: Annotated[float, Meta(gt=1.0, description="Ideal run times until it is 0.")] = 2.0
    power: Annotated[float, Meta(gt=0.0, description="Exponent of the straight line.")] = 1.0

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """F to the power, f falling from 1 at L to 0 at zero_at L."""
        spans = np.asarray(turnaround_s, dtype=float) / np.maximum(ideal_s, 1e-9)
        line = (self.zero_at - spans) / (self.zero_at - 1.0)
        line = np.minimum(np.maximum(line, 0.0), 1.0)  # a third of what np.clip takes
        return line if self.power == 1.0 else np.power(line, self.power)


class Convex(Linear, frozen=True):
    """Vengerov 2005, figure 5: the linear case squared."""

    shape: ClassVar[str] = "convex"
    power: Annotated[float, Meta(gt=0.0, description="Exponent of the straight line.")] = 2.0


class Concave(Linear, frozen=True):
    """Vengerov 2005, figure 5: the square root of the linear case."""

    shape: ClassVar[str] = "concave"
    power: Annotated[float, Meta(gt=0.0, description="Exponent of the straight line.")] = 0.5


class Rising(Struct, frozen=True):
    """Vengerov 2005, section 6: rises with the wait, so that no job starves.

    From `least` at once up to 1 after `full_s` of waiting.
    """

    shape: ClassVar[str] = "rising"
    least: Annotated[
        float, Meta(ge=0.0, le=1.0, description="Utility of a job that starts immediately.")
    ] = 0.5
    full_s: Annotated[float, Meta(gt=0.0, description="Seconds of waiting until 1.")] = 3600.0

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """Rises with turnaround less ideal run time."""
        waited_s = np.maximum(np.asarray(turnaround_s, dtype=float) - ideal_s, 0.0)
        return self.least + (1.0 - self.least) * np.minimum(waited_s / self.full_s, 1.0)


SHAPES: Final[dict[str, type[Any]]] = {
    kind.shape: kind
    for kind in (Constant, Step, Soft, Interactive, Batch, Linear, Convex, Concave, Rising)
}
"""The declared family, by name."""

DEFAULT_UTILITIES: Final[Mapping[str, TimeUtility]] = {
    "interactive": Interactive(),
    "batch": Batch(),
}
"""Utility functions by job class, for a site that declares none: those of Perez et al."""


def make_utility(
    given: Mapping[str, Any], where: str | Place, shapes: Mapping[str, type[Any]] = SHAPES
) -> TimeUtility:
    """The utility of a declaration such as ``{shape = "linear", zero_at = 3}``.

    Args:
        given: ``shape`` and its settings.
        where: the place to name in an error.
        shapes: those known, by name.

    Raises:
        ConfigurationError: no such shape (names the nearest), or settings that do not fit it.
    """
    name = given.get("shape")
    if name is None:
        raise ConfigurationError(
            f'{place_text(where)}: "shape" is missing: expected one of {", ".join(shapes)}, '
            'as in shape = "step"'
        )
    if not isinstance(name, str) or name not in shapes:
        raise ConfigurationError(
            f'{place_text(where, ["shape"])}: "shape" = {shown_value(name)}: no utility has that '
            f"shape; {nearest(str(name), shapes)}"
        )
    settings = {key: value for key, value in given.items() if key != "shape"}
    made: TimeUtility = build(shapes[name], settings, where)
    return made


def utility_of(utilities: Mapping[str, TimeUtility], job_class: str) -> TimeUtility:
    """The utility of a class; that of batch jobs for one without a declaration."""
    return utilities.get(job_class) or utilities.get("batch") or DEFAULT_UTILITIES["batch"]

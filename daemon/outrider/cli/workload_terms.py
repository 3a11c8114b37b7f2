"""What the options about a trace ask of a run; some are for workload files (.swf) alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from outrider.cli.options import split_pair, toml_value
from outrider.formats.workload import BATCH, INTERACTIVE, INTERACTIVE_BELOW_S
from outrider.model.disciplines import ALIASES, Discipline
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, make_utility
from outrider.plugins.finding import utility_shapes
from outrider.simulation.estimates import LEARNED, REQUESTED, EstimateRule, estimate_rule

_CLASSES = (INTERACTIVE, BATCH)
"""Of the jobs of workload files: their run time decides."""
_WHY_NOT = {
    "machines": "a campus names its machines in machines.csv",
    "interactive_below": "jobs of a campus have no class",
    "vo": "jobs.csv of a campus has a column for it",
    "utilities": "jobs of a campus have no utility",
}


class WorkloadTerms(NamedTuple):
    """What the options ask for.

    Attributes:
        machines: CPUs, in place of the header's.
        interactive_below_s: jobs that ran strictly less are interactive.
        vo: the column of the VO.
        estimates: what policies are told of run times; of a campus what users requested, unless
            given.
        discipline: who may start before a job that does not fit; None: the trace's default.
        utilities: by job class.
        declared: of these, the words that declared other than the defaults.
        given: names of the options that were given.
    """

    machines: int | None = None
    interactive_below_s: float = INTERACTIVE_BELOW_S
    vo: str = "group"
    estimates: EstimateRule = EstimateRule()
    discipline: Discipline | None = None
    utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES
    declared: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def refuse_for_campus(self, trace: str) -> None:
        """Raises `ConfigurationError` if an option was given that a campus has no use for."""
        if "estimates" in self.given and self.estimates.kind not in (REQUESTED, LEARNED):
            raise ConfigurationError(
                f"--estimates {self.estimates.kind}: {trace} is a campus, where policies are not "
                f"told the true run times; right would be {REQUESTED} (the column estimate_s of "
                f"jobs.csv; the default) or {LEARNED}"
            )
        for name in (name for name in self.given if name in _WHY_NOT):
            option = "utility" if name == "utilities" else name.replace("_", "-")
            raise ConfigurationError(
                f"--{option}: {_WHY_NOT[name]}; the option is for workload files (.swf), and "
                f"{trace} is a campus"
            )


def workload_terms(options: Mapping[str, Any]) -> WorkloadTerms:
    """What the options of `options.workload_options` ask for. Raises `ConfigurationError`."""
    words: tuple[str, ...] = options["utilities"]
    below_s: float | None = options["interactive_below"]
    return WorkloadTerms(
        machines=options["machines"],
        interactive_below_s=INTERACTIVE_BELOW_S if below_s is None else below_s,
        vo=options["vo"] or "group",
        estimates=estimate_rule(options["estimates"] or "exact", "--estimates"),
        discipline=_discipline(options["discipline"], options["backfill"]),
        utilities={**DEFAULT_UTILITIES, **_utilities(words)},
        declared=words,
        given=tuple(name for name, value in options.items() if value not in (None, ())),
    )


def _discipline(discipline: Discipline | None, backfill: str | None) -> Discipline | None:
    """What `--discipline` says, or its alias `--backfill`. Raises `ConfigurationError`."""
    if backfill is None:
        return discipline
    meant = ALIASES[backfill]
    if discipline not in (None, meant):
        raise ConfigurationError(
            f"--backfill {backfill} is --discipline {meant}, and --discipline {discipline} was "
            "given too; right would be one of them"
        )
    return meant


def _utilities(words: tuple[str, ...]) -> dict[str, TimeUtility]:
    """The utilities of ``CLASS=SHAPE[:k=v,...]``, by class."""
    utilities: dict[str, TimeUtility] = {}
    right = "CLASS=SHAPE[:key=value,...], as batch=linear:zero_at=3"
    for word in words:
        job_class, text = split_pair("--utility", word, right)
        shape, _, settings = text.partition(":")
        if job_class not in _CLASSES:
            raise ConfigurationError(
                f'--utility "{word}": jobs have no class "{job_class}"; '
                f"{nearest(job_class, _CLASSES)}"
            )
        if job_class in utilities:
            raise ConfigurationError(f'--utility "{word}": class {job_class} is declared twice')
        pairs = [split_pair("--utility", part, right) for part in settings.split(",") if settings]
        given = {key: toml_value(value) for key, value in pairs}
        utilities[job_class] = make_utility(
            {**given, "shape": shape}, f'--utility "{word}"', utility_shapes([shape])
        )
    return utilities

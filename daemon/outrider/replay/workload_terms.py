"""Options about a trace, parsed; some are for workload files (.swf) only."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from outrider.formats.job_classes import ClassRule, class_rule
from outrider.formats.option_words import split_pair, toml_value
from outrider.formats.workload import BATCH, INTERACTIVE, SHORT_BELOW_S, Workload
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.modes import ALIASES, Discipline
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility, make_utility
from outrider.plugins.finding import utility_shapes
from outrider.simulation.estimates import (
    LEARNED,
    REQUESTED,
    EstimateRule,
    default_rule,
    estimate_rule,
)

_CLASSES = (INTERACTIVE, BATCH)
"""Classes of the jobs of workload files."""
_WHY_NOT = {
    "machines": "a campus names its machines in machines.csv",
    "class_by": "jobs of a campus have no class",
    "interactive_below": "waits on a campus are not reported by run time",
    "vo": "jobs.csv of a campus has a column for it",
    "group_vos_below": "jobs.csv of a campus has a column for it",
    "utilities": "jobs of a campus have no utility",
}


class WorkloadTerms(NamedTuple):
    """Parsed options about a trace.

    Attributes:
        machines: CPUs, in place of the header's.
        class_by: what makes a job interactive; None: the best declaration of its users.
        short_below_s: reports group waits by whether a job ran strictly less; policies do not
            see it.
        vo: the column of the VO.
        group_vos_below: VOs with a smaller share of the requests than this are merged.
        estimates: run times that policies see; None: what users requested, where any did.
        discipline: the rule by which jobs may pass one that does not fit; None: the trace's
            default.
        utilities: by job class.
        declared: texts of the options in `utilities` that differ from the defaults.
        given: names of the options that were given.
    """

    machines: int | None = None
    class_by: ClassRule | None = None
    short_below_s: float = SHORT_BELOW_S
    vo: str = "group"
    group_vos_below: float = 0.0
    estimates: EstimateRule | None = None
    discipline: Discipline | None = None
    utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES
    declared: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def estimates_of(self, workload: Workload) -> EstimateRule:
        """Return the rule for the run times of a workload that policies see."""
        return default_rule(workload) if self.estimates is None else self.estimates

    def refuse_for_campus(self, trace: str) -> None:
        """Raise `ConfigurationError` if an option was given that is not valid for a campus."""
        rule = self.estimates
        if rule is not None and rule.kind not in (REQUESTED, LEARNED):
            raise ConfigurationError(
                f"--estimates {rule.kind}: {trace} is a campus, where policies do not see true "
                f"run times; expected {REQUESTED} (the column estimate_s of jobs.csv; the default) "
                f"or {LEARNED}"
            )
        for name in (name for name in self.given if name in _WHY_NOT):
            option = "utility" if name == "utilities" else name.replace("_", "-")
            raise ConfigurationError(
                f"--{option}: {_WHY_NOT[name]}; the option is for workload files (.swf), and "
                f"{trace} is a campus"
            )


def workload_terms(options: Mapping[str, Any]) -> WorkloadTerms:
    """Parse options of the command line, all given by name; None: not given.

    Raises:
        ConfigurationError: an option is invalid, or two contradict each other.
    """
    words: tuple[str, ...] = options["utilities"]
    below_s: float | None = options["interactive_below"]
    classes, estimates = options["class_by"], options["estimates"]
    return WorkloadTerms(
        machines=options["machines"],
        class_by=None if classes is None else class_rule(classes),
        short_below_s=SHORT_BELOW_S if below_s is None else below_s,
        vo=options["vo"] or "group",
        group_vos_below=_share(options["group_vos_below"] or 0.0),
        estimates=None if estimates is None else estimate_rule(estimates, "--estimates"),
        discipline=_discipline(options["discipline"], options["backfill"]),
        utilities={**DEFAULT_UTILITIES, **_utilities(words)},
        declared=words,
        given=tuple(name for name, value in options.items() if value not in (None, ())),
    )


def _discipline(discipline: Discipline | None, backfill: str | None) -> Discipline | None:
    """Return the discipline, given directly or by `--backfill`. Raises `ConfigurationError`."""
    if backfill is None:
        return discipline
    meant = ALIASES[backfill]
    if discipline not in (None, meant):
        raise ConfigurationError(
            f"--backfill {backfill} is --discipline {meant}, and --discipline {discipline} was "
            "given too; expected one of them"
        )
    return meant


def _share(ratio: float) -> float:
    """Return the checked `--group-vos-below`. Raises `ConfigurationError`."""
    if not 0.0 <= ratio <= 1.0:  # nor is nan
        raise ConfigurationError(
            f"--group-vos-below {ratio:g}: expected a share from 0 to 1, as 0.05"
        )
    return ratio


def _utilities(words: tuple[str, ...]) -> dict[str, TimeUtility]:
    """Return the utilities of ``CLASS=SHAPE[:k=v,...]``, by class."""
    utilities: dict[str, TimeUtility] = {}
    syntax = "CLASS=SHAPE[:key=value,...], as batch=linear:zero_at=3"
    for word in words:
        job_class, text = split_pair("--utility", word, syntax)
        shape, _, settings = text.partition(":")
        if job_class not in _CLASSES:
            raise ConfigurationError(
                f'--utility "{word}": jobs have no class "{job_class}"; '
                f"{nearest(job_class, _CLASSES)}"
            )
        if job_class in utilities:
            raise ConfigurationError(f'--utility "{word}": class {job_class} is declared twice')
        pairs = [split_pair("--utility", part, syntax) for part in settings.split(",") if settings]
        given = {key: toml_value(value) for key, value in pairs}
        utilities[job_class] = make_utility(
            {**given, "shape": shape}, f'--utility "{word}"', utility_shapes([shape])
        )
    return utilities

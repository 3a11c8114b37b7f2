"""`outrider.compare`: policies job by job, by the lab that is installed beside the core."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from outrider.model.errors import ConfigurationError, PluginError
from outrider.python_api.fields import Fields
from outrider.python_api.terms import seed_of, shares_of, terms_of

GROUP: Final = "outrider.functions"
"""Entry points of functions that the Python API calls and the core does not have."""


def compare(
    traces: Path | str | Iterable[Path | str],
    policies: Sequence[str] | str,
    *,
    baseline: str = "fifo",
    seeds: Iterable[int] = (0,),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    presets: Mapping[str, str] | None = None,
    machines: int | None = None,
    estimates: str | None = None,
    discipline: str | None = None,
    class_by: str | None = None,
    interactive_below_s: float | None = None,
    vo: str | None = None,
    group_vos_below: float | None = None,
    shares: Mapping[str, float] | None = None,
    utilities: Mapping[str, str] | None = None,
    block_s: float | None = None,
    workers: int = 1,
) -> Fields:
    """Compare policies on workload files, job by job, as ``outrider compare --json`` does.

    Args:
        traces: path of a workload file, or several.
        policies: a name, or several; the published baselines always run beside.
        baseline: the policy that all others are held against.
        seeds: of the policies' chance and of the estimates'.
        settings: of policies, by policy and name.
        presets: by policy.
        machines: CPUs, in place of the header's.
        estimates: what policies are told of run times, as of `outrider.replay`.
        discipline: who may start before a job that does not fit; None: strict.
        class_by: what makes a job interactive, as of `outrider.read_swf`.
        interactive_below_s: figures are grouped by whether a job ran strictly less, in seconds.
        vo: the column that says which VO a job belongs to.
        group_vos_below: VOs that ask for a lesser share than this count as one.
        shares: fair shares by VO, summing to 1; None: equal.
        utilities: what completing a job is worth, by class, as of `outrider.replay`.
        block_s: seconds of submissions that are drawn together for the intervals; None: chosen
            from the waits.
        workers: processes; 1: this one. With more, a script needs the usual
            ``if __name__ == "__main__":``.

    Returns:
        The document: `settings`, `traces` (policies with their differences and 95 % intervals),
        `over_traces`, and `failed`: runs that did, each with its error.

    Raises:
        ConfigurationError, PluginError: an argument, a policy or a setting is wrong, or the lab is
            not installed.
        TraceError: a trace cannot be read.
    """
    paths = _paths(traces)
    asked = [policies] if isinstance(policies, str) else policies
    names = tuple(dict.fromkeys((*asked, baseline)))
    for name in names:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"policies: {name!r} is no name; right would be that of an installed policy, which "
                "other processes can find, too (outrider.replay takes a class)"
            )
    for what, given in (("settings", settings), ("presets", presets)):
        strangers = sorted(set(given or {}) - set(names))
        if strangers:
            raise ConfigurationError(f"{what}: {strangers[0]} is none of the policies compared")
    terms = terms_of(
        machines=machines, class_by=class_by, interactive_below_s=interactive_below_s, vo=vo,
        group_vos_below=group_vos_below, estimates=estimates, discipline=discipline,
        utilities=utilities,
    )  # fmt: skip
    function = _function("compare")
    document: dict[str, Any] = function(
        paths,
        {name: (dict((settings or {}).get(name, {})), (presets or {}).get(name)) for name in names},
        baseline, [seed_of(seed) for seed in seeds], terms, shares_of(shares), block_s, workers,
    )  # fmt: skip
    return Fields(document)


def _paths(traces: Any) -> list[str]:
    """Paths of workload files. Raises `ConfigurationError` if a trace is in memory."""
    is_one = isinstance(traces, str) or not isinstance(traces, Iterable)
    given = [traces] if is_one else list(traces)
    for trace in given:
        if not isinstance(trace, str | Path):
            raise ConfigurationError(
                f"traces: a {type(trace).__name__} in memory; right would be the path of a "
                "workload file, which other processes can read, too (outrider.replay takes "
                "traces in memory)"
            )
    return [str(path) for path in given]


def _function(name: str) -> Any:
    """A function of another package. Raises `PluginError`."""
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise PluginError(
            f"{name}: no installed package has it under the entry points {GROUP}; Outrider's own "
            "lab does, once it is installed again"
        )
    return found[0].load()

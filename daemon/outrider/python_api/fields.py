"""Results: the JSON document of a command, its fields as attributes."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.model.errors import ConfigurationError
from outrider.python_api.records import Records


class Fields(Mapping[str, Any]):
    """A document whose fields are attributes, and items: ``run.jobs`` is ``run["jobs"]``.

    Args:
        document: plain data by field.

    What is deeper is plain data: ``run.wait_s["all"]["mean"]``. What is undefined or infinite is
    so here, and null in JSON.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = dict(document)

    def __getattr__(self, name: str) -> Any:
        document = self.__dict__.get("_document", {})
        if name in document:
            return document[name]
        raise AttributeError(
            f"{type(self).__name__} has no field {name!r}; it has {', '.join(document)}"
        )

    def __getitem__(self, name: str) -> Any:
        return self._document[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {', '.join(self._document)}>"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._document})

    def as_dict(self) -> dict[str, Any]:
        """The document itself, as the command has it with ``--json``."""
        return self._document


class Run(Fields):
    """One replay: the object of ``outrider replay --json`` under ``runs``.

    Every field is an attribute; docs/reference/definitions.md says what each is. Times and waits
    are seconds, energies watt-hours.

    Args:
        document: the run object.
        job_rows: what befell each job; None where it was not asked for.
    """

    trace: str
    policy: str
    settings: dict[str, Any]
    seed: int
    preset: str | None
    until_s: float | None
    discipline: str | None
    class_source: str
    estimates: str | None
    truth: list[str]
    jobs: dict[str, Any]
    wait_s: dict[str, Any]
    overhead_s: dict[str, Any]
    bounded_slowdown: dict[str, Any]
    defer_s: Any
    energy_wh: dict[str, Any]
    energy_measured_wh: Any
    goodput_s: float
    badput_s: float
    work_s: dict[str, Any]
    starts: int
    evictions: dict[str, int]
    fairness: dict[str, Any]
    utility: dict[str, Any]
    machines: int
    owner_sessions: int
    deferrals: dict[str, Any] | None
    span_s: float
    utilisation_ratio: float | None
    calibration: Any
    decisions: int
    events: int
    wall_s: float
    cpu_s: float
    max_rss_mb: float
    ledger_sha256: str
    ledger: str | None
    # Of workloads, not of campuses:
    cpus: int
    interactive_below_s: float
    vo_column: str
    group_vos_below: float
    utilities: list[str]

    def __init__(self, document: Mapping[str, Any], job_rows: Records | None) -> None:
        super().__init__(document)
        self._job_rows = job_rows

    @property
    def job_rows(self) -> Records:
        """A record for each job, in the order of submission; columns: the table ``jobs``.

        Raises:
            ConfigurationError: the run was made with ``jobs=False``.
        """
        if self._job_rows is None:
            raise ConfigurationError("this run kept no jobs; right would be replay(..., jobs=True)")
        return self._job_rows

    def __repr__(self) -> str:
        wait_s = self["wait_s"]["all"]["mean"]
        mean = "unknown" if wait_s is None else f"{wait_s:.0f} s"
        return f"<run of {self['policy']} on {self['trace']}: mean wait {mean}>"

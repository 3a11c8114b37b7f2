"""What a sweep asks the user's batch system for: the settings of a worker's job."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from outrider.model.errors import ConfigurationError

LOCAL: Final = "local-dask"
SYSTEMS: Final = ("htcondor", "slurm", "pbs", LOCAL)
"""Where a sweep's workers may run; `LOCAL` is dask on this machine, to try it."""

_ONLY: Final = {
    "queue": ("slurm", "pbs"),
    "account": ("slurm", "pbs"),
    "walltime": ("slurm", "pbs"),
    "disk": ("htcondor",),
}
"""Settings that not every system has."""


class ClusterSettings(msgspec.Struct, frozen=True):
    """How a worker's job is asked for. Unset: what dask-jobqueue's own configuration says."""

    memory: Annotated[str, Meta(description="Memory of a job.")] = "2 GB"
    cores: Annotated[int, Meta(ge=1, description="Cores of a job, one run at a time on each.")] = 1
    walltime: Annotated[str | None, Meta(description="HH:MM:SS after which a job ends.")] = None
    queue: Annotated[str | None, Meta(description="Slurm's partition, PBS's queue.")] = None
    account: Annotated[str | None, Meta(description="Who is charged.")] = None
    disk: Annotated[str | None, Meta(description="HTCondor: scratch space of a job.")] = None
    directives: Annotated[
        list[str] | dict[str, str],
        Meta(description="More for the head of a job: lines; for HTCondor a table."),
    ] = []
    prologue: Annotated[list[str], Meta(description="Shell lines before the worker starts.")] = []
    python: Annotated[
        str | None, Meta(description="Interpreter on the nodes; unset: the path of this one.")
    ] = None
    interface: Annotated[
        str | None, Meta(description="Network interface between the sweep and its workers: ib0.")
    ] = None

    def arguments(self, system: str) -> dict[str, Any]:
        """What dask-jobqueue is told.

        Raises:
            ConfigurationError: a setting that this system has not.
        """
        for name, systems in _ONLY.items():
            if getattr(self, name) is not None and system not in systems:
                raise ConfigurationError(f"[cluster] {name}: {system} has no such setting")
        wanted: type = dict if system == "htcondor" else list
        if self.directives and not isinstance(self.directives, wanted):
            right = "a table" if wanted is dict else "a list of lines"
            raise ConfigurationError(f"[cluster] directives: for {system} right would be {right}")
        told = {"directives": "job_extra_directives", "prologue": "job_script_prologue"}
        given = {told.get(name, name): v for name, v in msgspec.structs.asdict(self).items() if v}
        if system == "htcondor":
            given.setdefault("disk", "1 GB")
        return given | {"processes": self.cores}

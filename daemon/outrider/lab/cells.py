"""A cell: one trace under one policy with its settings and seed, and the run report it brings."""

from collections.abc import Mapping
from functools import lru_cache
from math import isinf
from pathlib import Path
from typing import Any

import msgspec

from outrider.api.policy import Policy
from outrider.formats.campus.campus import Campus
from outrider.lab.series import SampledRun
from outrider.ledger import LedgerHash
from outrider.model.decisions import Choice
from outrider.model.errors import ConfigurationError
from outrider.plugins.making import make_policy


class GeneratedCampus(msgspec.Struct, frozen=True, tag="generated"):
    """A campus made by chance.

    Attributes:
        seed: of the generator.
        options: (name, value) of what `outrider.simulation.generators.campus.CampusOptions` takes.
    """

    seed: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """How reports call it: ``generated-3``, ``generated-3 machines=200 weeks=8``."""
        return " ".join((f"generated-{self.seed}", *(f"{k}={v}" for k, v in self.options)))

    def load(self) -> Campus:
        """Make it. Raises `ConfigurationError`."""
        from outrider.simulation.generators.campus import generate_campus

        return generate_campus(self.seed, **dict(self.options))


class CampusFolder(msgspec.Struct, frozen=True, tag="folder"):
    """A campus in a folder; see `outrider.formats.campus.files.read_campus`."""

    path: str
    skip_bad: bool = False

    @property
    def name(self) -> str:
        """How reports call it: the path as it was given."""
        return self.path

    def load(self) -> Campus:
        """Read it. Raises `TraceError`."""
        from outrider.formats.campus.files import read_campus

        return read_campus(Path(self.path), skip_bad=self.skip_bad)


TraceSource = GeneratedCampus | CampusFolder
"""Where a trace comes from: small, hashable and picklable, where the trace itself is large."""


class Cell(msgspec.Struct, frozen=True):
    """What one run needs; picklable.

    Attributes:
        trace: where its trace comes from.
        policy: name of the plugin.
        settings: given settings; they win over the preset's.
        preset: one of the policy's named settings.
        seed: of the policy's chance.
    """

    trace: TraceSource
    policy: str
    settings: Mapping[str, Any] = {}
    preset: str | None = None
    seed: int = 0

    def __str__(self) -> str:
        """The cell in words: ``bandit literal epsilon=0.05, seed 1, on generated-3``."""
        words = [self.policy, *([self.preset] if self.preset else [])]
        words += [f"{name}={value}" for name, value in self.settings.items()]
        return f"{' '.join(words)}, seed {self.seed}, on {self.trace.name}"

    def make_policy(self) -> Policy:
        """A fresh policy. Raises `ConfigurationError`, `PluginError`."""
        return make_policy(self.policy, self.settings, self.seed, str(self), self.preset)


@lru_cache(maxsize=1)
def campus_of(source: TraceSource) -> Campus:
    """The trace of a source; the last one is kept, for a year takes seconds and 400 MB."""
    return source.load()


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run one cell in this process.

    Returns:
        The run object of ``outrider replay --json`` (trace, policy, settings, seed, preset, what
        was measured, ledger_sha256), and beside it `reconsider_s`, the decision epoch in force,
        and `by_week` and `by_month`, see `outrider.lab.series`.

    Raises:
        OutriderError: the trace cannot be read or made, the policy cannot be made, or it failed.
    """
    policy = cell.make_policy()
    policy.wants_scores = False
    digest = LedgerHash()

    def keep(
        time_s: float, job: str, action: str, machine: str | None, cpus: int, reason: str,
        name: str, choice: Choice | None,
    ) -> None:  # fmt: skip
        digest.add(time_s, job, action, machine, cpus)

    run = SampledRun(campus_of(cell.trace), [policy], keep)
    reconsider_s = run.seats[0].reconsider_s
    about: dict[str, Any] = {
        "trace": cell.trace.name,
        "policy": cell.policy,
        "settings": effective_settings(policy, reconsider_s),
        "reconsider_s": reconsider_s,
        "seed": cell.seed,
        "preset": cell.preset,
    }
    return about | run.run() | {"ledger_sha256": digest.hexdigest()}


def effective_settings(policy: Policy, reconsider_s: float) -> dict[str, Any]:
    """Every setting as it took effect; an infinite one is the text ``inf``, for JSON has none."""
    settings: dict[str, Any] = msgspec.to_builtins(policy.settings)
    if "reconsider_s" in settings:
        settings["reconsider_s"] = reconsider_s
    return {
        name: "inf" if isinstance(value, float) and isinf(value) else value
        for name, value in settings.items()
    }


def check_cells(cells: list[Cell]) -> None:
    """Refuse what is wrong before a long run, not after it.

    Raises:
        ConfigurationError, PluginError: a policy is not installed, or a setting is wrong.
    """
    if not cells:
        raise ConfigurationError("no cells to run: name a policy and a trace")
    for cell in cells:
        cell.make_policy()

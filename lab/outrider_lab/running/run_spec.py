"""A run spec: everything that determines one run, as plain data.

Whoever has the spec can carry the run out, in any process and on any machine that sees the same
files, and gets the same result. So a spec is also how a finished run is recognised.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from outrider.api.policy import Policy
from outrider.plugins.finding import make_policy
from outrider_lab.running.traces import DrawnWorkload, TraceSource

Options = tuple[tuple[str, Any], ...]
"""Plain data by name."""

_KEY_DIGITS = 16


class PolicySpec(msgspec.Struct, frozen=True):
    """A policy with given settings.

    Attributes:
        policy: name of the plugin.
        settings: (name, value) of given settings; they win over the preset's.
        preset: one of the policy's named settings.
    """

    policy: str
    settings: Options = ()
    preset: str | None = None

    @classmethod
    def of(
        cls, policy: str, settings: Mapping[str, Any], preset: str | None = None
    ) -> "PolicySpec":
        """Return a specification from settings as a configuration has them."""
        return cls(policy, tuple((name, _frozen(v)) for name, v in settings.items()), preset)

    def __str__(self) -> str:
        """Describe the policy in words: ``bandit literal epsilon=0.05``."""
        words = [self.policy, *([self.preset] if self.preset else [])]
        return " ".join((*words, *(f"{name}={value}" for name, value in self.settings)))

    def make(self, seed: int, where: str) -> Policy:
        """Return a new policy without scores. Raises `ConfigurationError`, `PluginError`."""
        policy = make_policy(self.policy, dict(self.settings), seed, where, self.preset)
        policy.wants_scores = False
        return policy


class RunSpec(msgspec.Struct, frozen=True):
    """Specification of one run.

    Attributes:
        work: the function that executes it: ``module:function``, from a spec to plain data.
        trace: where its jobs come from.
        policy: who decides, with which settings.
        seed: of the policy's chance.
        options: (name, value) of whatever else determines the run: estimates, discipline, shares,
            sizes.
    """

    work: str
    trace: TraceSource
    policy: PolicySpec
    seed: int = 0
    options: Options = ()

    def __str__(self) -> str:
        """Describe the run in words: ``bandit epsilon=0.05, seed 1, on kth.swf: estimates=exact``.

        Options that are tables (shares, utilities) are left out; they are in the key.
        """
        shown = [(name, value) for name, value in self.options if not isinstance(value, tuple)]
        options = ", ".join(f"{name}={value}" for name, value in shown)
        words = f"{self.policy}, seed {self.seed}, on {self.trace.name}"
        return f"{words}: {options}" if options else words

    @property
    def key(self) -> str:
        """16 hexadecimal digits: equal specs have equal ones, in any process."""
        plain = msgspec.to_builtins(self)
        text = json.dumps(plain, sort_keys=True, default=repr)  # inf and nan stay apart from null
        return sha256(text.encode()).hexdigest()[:_KEY_DIGITS]

    def option(self, name: str) -> Any:
        """Return the value of an option. Raises `KeyError`."""
        return dict(self.options)[name]

    @property
    def drawn(self) -> DrawnWorkload:
        """The trace, of a run that draws its own. Raises `TypeError` for any other."""
        if not isinstance(self.trace, DrawnWorkload):
            kind = type(self.trace).__name__
            raise TypeError(f"{self}: the trace is a {kind}; expected a DrawnWorkload")
        return self.trace

    def make_policy(self) -> Policy:
        """Return a new policy. Raises `ConfigurationError`, `PluginError`, which name the run."""
        return self.policy.make(self.seed, str(self))


def _frozen(value: Any) -> Any:
    """Return lists as tuples: a spec can be a key."""
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value

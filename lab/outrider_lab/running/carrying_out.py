"""Carrying out one run, wherever this is called: the one function that workers do."""

import json
from importlib import import_module
from typing import Any, NamedTuple

import msgspec
import numpy as np

from outrider import __version__
from outrider.replay.run import let_go_of_runs
from outrider_lab.running.run_spec import RunSpec


class CarriedOut(NamedTuple):
    """What a run brought.

    Attributes:
        version: of the Outrider that ran it.
        text: the result as JSON; with ``NaN`` and ``Infinity``, as Python's own `json` has them.
    """

    version: str
    text: str


def carry_out(spec: RunSpec) -> CarriedOut:
    """Run a spec in this process.

    The result goes as text even to who asked: what is read back from a file of finished runs is
    then what a run that has just ended brings, to the last type and digit.

    Raises:
        OutriderError: the trace or the policy cannot be made, or the policy failed.
        TypeError: the result is no plain data.
    """
    module, _, name = spec.work.partition(":")
    let_go_of_runs()
    result = getattr(import_module(module), name)(spec)
    return CarriedOut(__version__, json.dumps(result, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return msgspec.to_builtins(value)

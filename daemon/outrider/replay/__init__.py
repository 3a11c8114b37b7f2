"""Replay: runs the engine on a simulated or recorded site, for the CLI and `simulated`.

The package itself can be called: `outrider.replay(trace, policy=...)` is the function
`outrider.python_api.replaying.replay` of the Python API. Python binds the name of a subpackage to
that subpackage once any module of it is imported, so one object has to be both
(docs/decisions/0050-a-python-api-that-costs-nothing.md).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """Package that can be called like a function."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call `outrider.python_api.replaying.replay` with these arguments."""
        return import_module("outrider.python_api.replaying").replay(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage

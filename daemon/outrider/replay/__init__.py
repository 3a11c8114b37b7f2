"""Replay: runs the engine on a simulated or recorded site, for the CLI and `simulated`.

Called, as `outrider.replay(trace, policy=...)`, it is the function
`outrider.python_api.replaying.replay` of the Python API: Python binds the name of a package's part
to that part once anything of it is imported, so one object has to be both
(docs/decisions/0050-a-python-api-that-costs-nothing.md).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallableRoom(ModuleType):
    """This package, which can be called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """As `outrider.python_api.replaying.replay`."""
        return import_module("outrider.python_api.replaying").replay(*args, **options)


sys.modules[__name__].__class__ = _CallableRoom

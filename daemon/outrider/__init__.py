"""Outrider: a learning site scheduler that rides alongside a batch system.

`import outrider` is also its Python API (docs/python-api.md): the names of `__all__` are made when
they are first used, so that the import itself costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PLACES = {
    "compare": "outrider.python_api.replaying",
    "generate_campus": "outrider.python_api.reading",
    "generate_grid": "outrider.python_api.reading",
    "ingest": "outrider.python_api.reading",
    "open_journal": "outrider.python_api.reading",
    "read_campus": "outrider.python_api.reading",
    "read_swf": "outrider.python_api.reading",
    "replay": "outrider.replay",  # the package itself can be called: see there
}
"""Module of each name of the API; the types are in `__init__.pyi`, next to this file."""

__all__ = ["__version__", *_PLACES]  # noqa: PLE0604 - all are text


def __getattr__(name: str) -> Any:
    """Return a name of the API. Raises `AttributeError` for any other."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'outrider' has no attribute {name!r}")
    module = import_module(place)
    return module if place == f"{__name__}.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})

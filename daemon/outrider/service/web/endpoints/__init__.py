"""The endpoints: a file each, and their names here.

A new endpoint is a file in this folder with an ``ENDPOINT``, and a line in `NAMES`. `jobs` shows
one with parameters, `utility` one without. Nothing else has to change: the application serves
the list, the OpenAPI document and (by `make docs`) the reference page are made from it, in this
order, and tests ask every endpoint of a living daemon.
"""

from importlib import import_module
from typing import Any, Final

from outrider.service.web.endpoint import Endpoint

NAMES: Final = (
    "page",
    "page_part",
    "sign_in",
    "metrics",
    "healthz",
    "readyz",
    "status",
    "jobs",
    "machines",
    "machine",
    "users",
    "vos",
    "decisions",
    "explain",
    "utility",
    "use",
    "jobs_over_time",
    "commands",
    "promotion",
    "openapi_json",
)


def load_endpoints(names: tuple[str, ...]) -> tuple[Endpoint[Any], ...]:
    """The endpoints that these files declare."""
    return tuple(import_module(f"{__name__}.{name}").ENDPOINT for name in names)


ENDPOINTS: Final = load_endpoints(NAMES)

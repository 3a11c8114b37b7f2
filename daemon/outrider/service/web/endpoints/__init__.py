"""The endpoints of the HTTP API: one module per resource, and the list of these modules.

A new endpoint is declared in the module of its resource, which adds it to its ``ENDPOINTS``. Only
a new resource needs a new module, and a line in `NAMES`. `jobs` shows an endpoint with parameters,
`status` two without. Nothing else has to change: the application serves the list, the OpenAPI
document and (by `make docs`) the reference page are generated from it, in this order, and tests
query every endpoint of a running daemon.
"""

from importlib import import_module
from typing import Any, Final

from outrider.service.web.endpoint import Endpoint

NAMES: Final = (
    "status_page",
    "probes",
    "status",
    "jobs",
    "machines",
    "users_and_vos",
    "explain",
    "over_time",
    "commands",
)


def load_endpoints(names: tuple[str, ...]) -> tuple[Endpoint[Any], ...]:
    """Return the endpoints that these modules declare, in their order."""
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return tuple(endpoint for module in modules for endpoint in module.ENDPOINTS)


ENDPOINTS: Final = load_endpoints(NAMES)

"""Reference page of paths and parameters, generated from the endpoints' declarations."""

from typing import Any

from outrider.service.web import openapi
from outrider.service.web.endpoints import ENDPOINTS

_HEAD = """\
# Endpoints

<!-- Made by `make docs` from daemon/outrider/service/web/endpoints. -->

Paths for GET and HEAD, and for POST over the Unix socket. [The HTTP interface](http.md) describes
what they share. Schemas of answers: `/api/v1/openapi.json`.

"""


def endpoints_page() -> str:
    """Return the page in Markdown: a row for each path, and a row for each parameter."""
    paths = openapi(ENDPOINTS)["paths"]
    parameters: dict[tuple[str, str], list[str]] = {}
    for path, item in paths.items():
        for parameter in _asked(item):
            row = (parameter["name"], _row_of(parameter["schema"]))
            parameters.setdefault(row, []).append(f"`{path}`")
    rows = "".join(
        f"| `{name}` | {', '.join(where)} | {row} |\n" for (name, row), where in parameters.items()
    )
    return (
        f"{_HEAD}| path | answer | parameters |\n|---|---|---|\n"
        f"{''.join(_path_rows(path, item) for path, item in paths.items())}\n"
        f"| parameter | paths | values | meaning |\n|---|---|---|---|\n{rows}"
    )


def _asked(item: Any) -> list[dict[str, Any]]:
    """Return the query parameters, after the ``?``."""
    return [p for p in item["get"]["parameters"] if p["in"] == "query"]


def _path_rows(path: str, item: Any) -> str:
    rows = _path_row(path, item["get"])
    if "post" in item:
        rows += f"| `{path}` (POST) | {item['post']['summary'].rstrip('.')} |  |\n"
    return rows


def _path_row(path: str, operation: dict[str, Any]) -> str:
    names = ", ".join(f"`{p['name']}`" for p in _asked({"get": operation}))
    summary = operation["summary"].rstrip(".")
    token = "; needs no token" if operation.get("security") == [] else ""
    return f"| `{path}` | {summary}{token} | {names} |\n"


def _row_of(schema: dict[str, Any]) -> str:
    """Return the valid values of a parameter, and its meaning."""
    return f"{_right(schema)} | {schema['description'].rstrip('.')}"


def _right(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    right = _KINDS[schema["type"]]
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None and most < 2**63 - 1:
        right = f"{_figure(least)} to {_figure(most)}"
    elif least is not None:
        right += f", {_figure(least)} or more"
    default = schema.get("default")
    return right if default is None else f"{right}; default {_figure(default)}"


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "`true` or `false`",
}


def _figure(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{value}`".lower()
    return f"{value:.15g}" if isinstance(value, int | float) else f"`{value}`"

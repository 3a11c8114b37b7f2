"""The reference page lists all endpoints, in the words of their declarations."""

from pathlib import Path

import pytest

from outrider.service.web import openapi
from outrider.service.web.endpoints import ENDPOINTS


@pytest.fixture(scope="module")
def reference(repository: Path) -> str:
    """The generated reference of the endpoints."""
    return (repository / "docs" / "reference" / "endpoints.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(openapi(ENDPOINTS)["paths"]))
def test_every_path_stands_in_the_reference(path: str, reference: str) -> None:
    assert f"`{path}`" in reference


def test_every_parameter_stands_in_the_reference_with_its_limits(reference: str) -> None:
    rows = [line for line in reference.splitlines() if line.startswith("| `")]
    parameters = [
        (path, parameter["name"], parameter["schema"])
        for path, item in openapi(ENDPOINTS)["paths"].items()
        for parameter in item["get"]["parameters"]
        if parameter["in"] == "query"
    ]
    assert {name for _, name, _ in parameters} >= {"limit", "state", "job", "after"}
    for path, name, schema in parameters:
        (row,) = [r for r in rows if r.startswith(f"| `{name}` ") and f"`{path}`" in r]
        for value in schema.get("enum", []):
            assert f"`{value}`" in row
        for limit in ("minimum", "default"):
            assert limit not in schema or written(schema[limit]) in row


def written(value: str | float | bool) -> str:
    """Return a value as a user would write it after the `?`."""
    if isinstance(value, str):
        return f"`{value}`"
    return f"`{value}`".lower() if isinstance(value, bool) else f"{value:.15g}"

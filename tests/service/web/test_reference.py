"""The reference page tells of everything that is served, in the declaration's own words."""

from pathlib import Path

import pytest

from outrider.service.web import openapi
from outrider.service.web.endpoints import ENDPOINTS


@pytest.fixture(scope="module")
def reference(repository: Path) -> str:
    return (repository / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(openapi(ENDPOINTS)["paths"]))
def test_every_path_stands_in_the_reference(path: str, reference: str) -> None:
    assert f"`{path}`" in reference


def test_every_parameter_stands_in_the_reference_with_its_limits(reference: str) -> None:
    rows = [line for line in reference.splitlines() if line.startswith("| `")]
    parameters = {
        parameter["name"]: parameter["schema"]
        for item in openapi(ENDPOINTS)["paths"].values()
        for parameter in item["get"]["parameters"]
        if parameter["in"] == "query"
    }
    assert set(parameters) == {"limit", "state", "job", "after"}
    for name, schema in parameters.items():
        (row,) = [line for line in rows if line.startswith(f"| `{name}` ")]
        for value in schema.get("enum", []):
            assert f"`{value}`" in row
        for limit in ("minimum", "default"):
            assert str(schema.get(limit, "")) in row

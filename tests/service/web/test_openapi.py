"""The OpenAPI document agrees with the served endpoints."""

import json
import re
from typing import Any

import msgspec
import pytest

from outrider.service.web import openapi
from outrider.service.web.endpoint import Endpoint
from outrider.service.web.endpoints import ENDPOINTS
from tests.fixtures.plain import EVERYTHING, shaped
from tests.service.web.shapes import undeclared
from tests.service.web.small_site import STAND_INS, SmallSite, visit

API = [endpoint for endpoint in ENDPOINTS if endpoint.name in STAND_INS]


def test_the_document_names_every_path_and_parameter_that_is_served() -> None:
    document = json.loads(msgspec.json.encode(openapi(ENDPOINTS)))
    app = SmallSite().app()
    served = {
        resource.canonical for resource in app.router.resources() if resource.canonical is not None
    }
    assert set(document["paths"]) == served
    named = {
        path: [parameter["name"] for parameter in item["get"]["parameters"]]
        for path, item in document["paths"].items()
    }
    assert named == {
        endpoint.path: [*re.findall(r"{(\w+)}", endpoint.path), *endpoint.query.__struct_fields__]
        for endpoint in ENDPOINTS
    }
    assert named["/api/v1/jobs"] == [
        "limit", "after", "sort", "state", "user", "vo", "group", "reason", "waiting_over_s",
        "candidates",
    ]  # fmt: skip
    assert named["/api/v1/explain/{job}"] == ["job"]


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = json.loads(msgspec.json.encode(openapi(ENDPOINTS)))
    references: list[str] = []

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                references.append(node["$ref"])
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(document)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert len(set(references)) > 20
    assert set(references) <= known
    assert document["openapi"] == "3.1.0"
    operations = [item["get"]["operationId"] for item in document["paths"].values()]
    assert len(set(operations)) == len(operations)


def test_each_path_names_the_answers_that_it_may_give() -> None:
    paths = openapi(ENDPOINTS)["paths"]
    answers = {path: list(item["get"]["responses"]) for path, item in paths.items()}
    assert answers["/healthz"] == ["200", "500"]
    assert answers["/api/v1/jobs"] == ["200", "400", "401", "500", "503"]
    assert answers["/api/v1/status"] == ["200", "401", "500", "503"]
    assert answers["/api/v1/explain/{job}"] == ["200", "300", "401", "404", "500", "503"]
    assert answers["/metrics"] == ["200", "401", "500"], "also while the daemon starts"
    assert paths["/healthz"]["get"]["security"] == []
    assert "security" not in paths["/api/v1/jobs"]["get"], "as the document says for all"


@pytest.mark.parametrize("endpoint", API, ids=lambda endpoint: endpoint.name)
async def test_answers_of_the_small_site_have_the_shape_that_the_document_declares(
    endpoint: Endpoint[Any],
) -> None:
    async with (
        visit(SmallSite()) as client,
        client.get(endpoint.path.replace("{job}", "1042.0").replace("{machine}", "m1")) as answer,
    ):
        body = await answer.read()
    checked = shaped(json.loads(body), endpoint.answer, strict=True)
    assert undeclared(json.loads(body), json.loads(EVERYTHING.encode(checked))) == []


async def test_an_error_has_the_shape_that_the_document_declares() -> None:
    schema = openapi(ENDPOINTS)["components"]["schemas"]["Failure"]
    async with visit(SmallSite()) as client, client.get("/nothing") as answer:
        assert set(await answer.json()) == set(schema["required"]) == {"error"}

"""The OpenAPI document tells the truth about what is served."""

import json

import msgspec
import pytest

from outrider.service.http import make_app, openapi
from outrider.service.http.routes import ROUTES, Route
from tests.service.web.shapes import undeclared
from tests.service.web.small_site import SmallSite, visit

API = [route for route in ROUTES if route.path.startswith("/api/")]


def test_the_document_names_every_route_and_parameter_that_is_served() -> None:
    document = json.loads(msgspec.json.encode(openapi()))
    app = make_app(SmallSite(), None)
    served = {
        resource.canonical for resource in app.router.resources() if resource.canonical is not None
    }
    assert set(document["paths"]) == served
    named = {
        path: [parameter["name"] for parameter in item["get"]["parameters"]]
        for path, item in document["paths"].items()
    }
    assert {path: names for path, names in named.items() if names} == {
        "/page/{asset}": ["asset"],
        "/api/v1/jobs": ["limit", "state"],
        "/api/v1/machines": ["limit"],
        "/api/v1/decisions": ["limit", "job", "after"],
        "/api/v1/explain/{job}": ["job"],
    }


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = json.loads(msgspec.json.encode(openapi()))
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


@pytest.mark.parametrize("route", API, ids=lambda route: route.operation)
async def test_real_answers_have_the_shape_that_the_document_declares(route: Route) -> None:
    async with (
        visit(SmallSite()) as client,
        client.get(route.path.replace("{job}", "1042.0")) as answer,
    ):
        body = await answer.read()
    checked = msgspec.json.decode(body, type=route.answer, strict=True)
    assert undeclared(json.loads(body), json.loads(msgspec.json.encode(checked))) == []


async def test_an_error_has_the_shape_that_the_document_declares() -> None:
    schema = openapi()["components"]["schemas"]["Failure"]
    async with visit(SmallSite()) as client, client.get("/nothing") as answer:
        assert set(await answer.json()) == set(schema["required"]) == {"error"}

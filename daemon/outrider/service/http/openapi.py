"""The OpenAPI 3.1 document, made from the routes and the shapes of their answers."""

import re
from functools import cache
from typing import Any, Final

import msgspec

import outrider
from outrider.service.http import query
from outrider.service.http.answers import Failure
from outrider.service.http.routes import JSON, ROUTES, Route

_REF: Final = "#/components/schemas/{name}"
_DESCRIPTIONS: Final = {
    200: "The answer.",
    300: "Several jobs may be meant; the candidates are listed.",
    400: "A query parameter is wrong.",
    401: "A token is configured and the client sent none, or another.",
    404: "Nobody knows it.",
    500: "A fault of Outrider's own; the log tells.",
    503: "Not ready.",
}


@cache
def openapi() -> dict[str, Any]:
    """The whole document, as plain data; do not change it."""
    shapes = [route.answer for route in ROUTES if route.answer is not None]
    shapes += [shape for route in ROUTES for shape in route.others.values()]
    shapes.append(Failure)
    _, components = msgspec.json.schema_components(shapes, ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Outrider",
            "version": outrider.__version__,
            "description": "What a learning site scheduler saw, measured and would have done. "
            "It is read only. Times are Unix seconds of event time; null is unknown.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {route.path: {"get": _operation(route)} for route in ROUTES},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "For browsers: any user name, the token as password.",
                },
            },
        },
        "security": [{"token": []}, {"password": []}, {}],
    }


def _operation(route: Route) -> dict[str, Any]:
    answers: dict[int, Any] = {500: Failure, **route.others}
    if route.query is not None:
        answers[400] = Failure
    if not route.open:
        answers[401] = Failure
    responses = {200: _response(200, route.answer, route.content)}
    responses |= {status: _response(status, shape, JSON) for status, shape in answers.items()}
    operation = {
        "operationId": route.operation,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {str(status): responses[status] for status in sorted(responses)},
    }
    return operation | ({"security": []} if route.open else {})


def _response(status: int, shape: Any, content: str) -> dict[str, Any]:
    if shape is None:
        media: dict[str, Any] = {}
    else:
        (schema,), _ = msgspec.json.schema_components([shape], ref_template=_REF)
        media = {"schema": schema}
    return {"description": _DESCRIPTIONS[status], "content": {content: media}}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in query.schemas(route.query).items()
    ]

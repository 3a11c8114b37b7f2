"""The OpenAPI 3.1 document, made from the endpoints and the shapes of their answers."""

import re
from functools import cache
from typing import Any, Final

import msgspec

import outrider
from outrider.service.web import query
from outrider.service.web.endpoint import JSON, Endpoint, NoQuery
from outrider.service.web.shapes.values import Failure

_REF: Final = "#/components/schemas/{name}"
_DESCRIPTIONS: Final = {
    200: "The answer.",
    300: "Several jobs may be meant; the candidates are listed.",
    400: "A query parameter is wrong.",
    401: "A token is configured and the client sent none, or another.",
    404: "Nobody knows it.",
    500: "A fault of Outrider's own; the log tells.",
    503: "Not ready, or still starting.",
}


@cache
def openapi(endpoints: tuple[Endpoint[Any], ...]) -> dict[str, Any]:
    """The whole document, as plain data; do not change it."""
    shapes = [endpoint.answer for endpoint in endpoints if endpoint.answer is not None]
    shapes += [shape for endpoint in endpoints for shape in endpoint.others.values()]
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
        "paths": {endpoint.path: {"get": _operation(endpoint)} for endpoint in endpoints},
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


def _operation(endpoint: Endpoint[Any]) -> dict[str, Any]:
    answers: dict[int, Any] = {500: Failure, **endpoint.others}
    if endpoint.query is not NoQuery:
        answers[400] = Failure
    if not endpoint.open:
        answers[401] = Failure
    if not endpoint.while_starting:
        answers[503] = Failure
    responses = {200: _response(200, endpoint.answer, endpoint.content)}
    responses |= {status: _response(status, shape, JSON) for status, shape in answers.items()}
    operation = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {str(status): responses[status] for status in sorted(responses)},
    }
    return operation | ({"security": []} if endpoint.open else {})


def _response(status: int, shape: Any, content: str) -> dict[str, Any]:
    if shape is None:
        media: dict[str, Any] = {}
    else:
        (schema,), _ = msgspec.json.schema_components([shape], ref_template=_REF)
        media = {"schema": schema}
    return {"description": _DESCRIPTIONS[status], "content": {content: media}}


def _path_parameters(endpoint: Endpoint[Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint[Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in query.schemas(endpoint.query).items()
    ]

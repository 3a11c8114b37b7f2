"""The OpenAPI 3.1 document, generated from the endpoints and the shapes of their answers."""

import re
from functools import cache
from typing import Any, Final

import msgspec

import outrider
from outrider.service.shapes.values import Failure, OutsideText, UserName, VoName
from outrider.service.web.endpoint import JSON, Endpoint, NoQuery, Post, schemas

_REF: Final = "#/components/schemas/{name}"
_DESCRIPTIONS: Final = {
    200: "Successful answer.",
    300: "Several jobs match; the answer lists them.",
    400: "A query parameter is wrong.",
    401: "A token is required, and the client sent none or a wrong one.",
    403: "The client may not send commands, or is a web page.",
    404: "Not found.",
    405: "Commands are not accepted over TCP.",
    408: "The body did not arrive in time.",
    409: "The command was refused; the answer contains the reason.",
    413: "The body is too long.",
    415: "The body is not declared as JSON.",
    500: "Internal error (please report); details are in the daemon's log.",
    503: "Not ready, or still starting.",
}


def _schema_of_text(kind: type) -> dict[str, Any]:
    """Return the schema of names, which clients get as text."""
    if kind in (UserName, VoName, OutsideText):
        return {"type": "string"}
    raise NotImplementedError(f"no schema of {kind.__name__}")


@cache
def openapi(endpoints: tuple[Endpoint[Any], ...]) -> dict[str, Any]:
    """Return the OpenAPI document as plain data, cached; do not modify it."""
    shapes = [endpoint.answer for endpoint in endpoints if endpoint.answer is not None]
    shapes += [shape for endpoint in endpoints for shape in endpoint.others.values()]
    for post in (endpoint.post for endpoint in endpoints if endpoint.post is not None):
        shapes += [post.body, post.answer, *post.others.values()]
    shapes.append(Failure)
    _, components = msgspec.json.schema_components(
        shapes, schema_hook=_schema_of_text, ref_template=_REF
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Outrider",
            "version": outrider.__version__,
            "description": "Observations, measurements and decisions of a learning site "
            "scheduler. Only commands over the Unix socket change anything. Times are Unix "
            "seconds of event time; null is unknown.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {endpoint.path: _operations(endpoint) for endpoint in endpoints},
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


def _operations(endpoint: Endpoint[Any]) -> dict[str, Any]:
    operations = {"get": _operation(endpoint)}
    return operations if endpoint.post is None else operations | {"post": _post(endpoint.post)}


def _post(post: Post[Any]) -> dict[str, Any]:
    """Return the POST operation; the kernel authenticates its client, so there is no token."""
    answers: dict[int, Any] = dict.fromkeys((400, 403, 405, 408, 413, 415, 500), Failure)
    answers |= dict(post.others)
    responses = {200: _response(200, post.answer, JSON)}
    responses |= {status: _response(status, shape, JSON) for status, shape in answers.items()}
    (schema,), _ = msgspec.json.schema_components([post.body], ref_template=_REF)
    return {
        "operationId": post.name,
        "summary": post.summary,
        "description": "Only over the Unix socket.",
        "requestBody": {"required": True, "content": {JSON: {"schema": schema}}},
        "responses": {str(status): responses[status] for status in sorted(responses)},
        "security": [],
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
        (schema,), _ = msgspec.json.schema_components(
            [shape], schema_hook=_schema_of_text, ref_template=_REF
        )
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
        for name, schema in schemas(endpoint.query).items()
    ]

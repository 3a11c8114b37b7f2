"""Every route, declared once: the application serves this table, the OpenAPI document prints it."""

from typing import Any, Final, NamedTuple

from msgspec import Struct

from outrider.service.http import answers, query

JSON: Final = "application/json"


class Route(NamedTuple):
    """One path.

    Attributes:
        path: with its variable parts in braces.
        operation: name of the handler, and operation id of the document.
        summary: one sentence, for the document.
        answer: shape of a good answer, None where it is no JSON.
        content: media type of a good answer.
        query: what may stand after the ``?``; None ignores whatever does.
        others: shape of the answer by further status.
        open: answered without a token, too.
    """

    path: str
    operation: str
    summary: str
    answer: Any = None
    content: str = JSON
    query: type[Struct] | None = None
    others: dict[int, type[Struct]] = {}  # noqa: RUF012 (never changed; a NamedTuple's default)
    open: bool = False


ROUTES: Final = (
    Route("/", "page", "The live status page.", content="text/html"),
    Route(
        "/page/{asset}",
        "asset",
        "A part of the status page: style, script, icon.",
        content="*/*",
        others={404: answers.Failure},
    ),
    Route(
        "/metrics",
        "metrics",
        "Metrics for Prometheus: OpenMetrics where the client accepts it, else the classic text.",
        content="text/plain",
    ),
    Route("/healthz", "healthz", "The process answers.", answers.Health, open=True),
    Route(
        "/readyz",
        "readyz",
        "The daemon does its work: 200, or 503 with the reasons.",
        answers.Readiness,
        others={503: answers.Readiness},
    ),
    Route("/api/v1/status", "status", "Everything the page shows.", answers.Status),
    Route("/api/v1/jobs", "jobs", "Jobs now.", answers.Jobs, query=query.JobsQuery),
    Route(
        "/api/v1/machines",
        "machines",
        "Machines now.",
        answers.Machines,
        query=query.MachinesQuery,
    ),
    Route(
        "/api/v1/decisions",
        "decisions",
        "Rows of the ledger.",
        answers.Decisions,
        query=query.DecisionsQuery,
    ),
    Route(
        "/api/v1/explain/{job}",
        "explain",
        "Why a job is where it is. Its name is percent-encoded (`#` is %23; a slash may stand as "
        "it is). A short form such as 1234.0 does where only one job here has it.",
        answers.Explanation,
        others={300: answers.Ambiguity, 404: answers.Failure},
    ),
    Route("/api/v1/utility", "utility", "What the site is worth to a job.", answers.Utility),
    Route("/api/v1/openapi.json", "openapi", "This document.", answers.Document),
)

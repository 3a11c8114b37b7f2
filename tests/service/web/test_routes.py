"""Answers of each endpoint, and errors for other requests."""

import json
import math
from typing import Any

import pytest
from yarl import URL

from outrider.service.views.job_list import JOB_SORTS
from outrider.service.web.endpoint import Endpoint
from outrider.service.web.endpoints import ENDPOINTS
from outrider.service.web.endpoints.explain import DecisionsQuery
from outrider.service.web.endpoints.jobs import JobsQuery
from outrider.service.web.endpoints.machines import MachinesQuery
from tests.service.web.small_answers import STATUS
from tests.service.web.small_site import SmallSite, visit

SEQUENCE_NUMBER = f"a whole number from 0 to {2**63 - 1}"


def address(endpoint: Endpoint[Any]) -> str:
    parts = {"{job}": "1042.0", "{asset}": "page.js", "{machine}": "lib-017"}
    path = endpoint.path
    for part, value in parts.items():
        path = path.replace(part, value)
    return path


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_only_get_and_head_are_allowed(endpoint: Endpoint[Any], method: str) -> None:
    async with (
        visit(SmallSite()) as client,
        client.request(method, address(endpoint)) as answer,
    ):
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"
        assert method in (await answer.json())["error"]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_every_answer_is_guarded_against_foreign_pages(endpoint: Endpoint[Any]) -> None:
    async with visit(SmallSite()) as client, client.get(address(endpoint)) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "aiohttp" not in answer.headers["Server"].lower()


async def test_the_status_is_what_the_daemon_says_with_nan_as_null() -> None:
    async with visit(SmallSite()) as client, client.get("/api/v1/status") as answer:
        assert answer.content_type == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        got = json.loads(await answer.text(), parse_constant=pytest.fail)
    assert math.isnan(STATUS["wait_s"]["by_class"]["interactive"]["mean"])
    assert got["wait_s"]["by_class"]["interactive"]["mean"] is None
    assert got["sentence"] == STATUS["sentence"]
    assert got["energy_wh"]["owner"] is None


async def test_infinity_becomes_null() -> None:
    async with visit(SmallSite()) as client, client.get("/api/v1/utility") as answer:
        assert json.loads(await answer.text(), parse_constant=pytest.fail)["site_utility"] == {
            "free_machines": 65,
            "queued_jobs": 86,
            "mean_wait_s": 192.4,
            "fairness": None,
            "energy_wh": STATUS["energy_wh"],
            "energy_measured_wh": STATUS["energy_measured_wh"],
        }


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api/v1/jobs", JobsQuery()),
        ("/api/v1/jobs?limit=5000&state=queued", JobsQuery(limit=5000, state="queued")),
        (
            "/api/v1/jobs?sort=-waiting_s&group=lab&reason=no&waiting_over_s=60&after=7",
            JobsQuery(sort="-waiting_s", group="lab", reason="no", waiting_over_s=60.0, after="7"),
        ),
        ("/api/v1/machines?limit=1", MachinesQuery(limit=1)),
        ("/api/v1/decisions", DecisionsQuery()),
        ("/api/v1/decisions?job=10%2F4%20ü&after=0", DecisionsQuery(job="10/4 ü", after=0)),
        ("/api/v1/decisions?job=null&limit=7", DecisionsQuery(limit=7, job="null")),
    ],
)
async def test_query_parameters_reach_the_daemon(path: str, asked: object) -> None:
    site = SmallSite()
    async with visit(site) as client, client.get(path) as answer:
        assert answer.status == 200
    assert site.asked == [asked]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("jobs?limit=0", "\"limit\" = '0': expected a whole number from 1 to 5000"),
        ("jobs?limit=5001", "\"limit\" = '5001': expected a whole number from 1 to 5000"),
        ("jobs?limit=many", "\"limit\" = 'many': expected a whole number from 1 to 5000"),
        ("jobs?limit=", "\"limit\" = '': expected a whole number from 1 to 5000"),
        (
            "jobs?state=asleep",
            "\"state\" = 'asleep': expected one of held, queued, running, suspended",
        ),
        (
            "jobs?sort=waiting",
            f"\"sort\" = 'waiting': expected one of {', '.join(sorted(JOB_SORTS))}",
        ),
        (
            "jobs?waiting_over_s=-1",
            "\"waiting_over_s\" = '-1': expected a number from 0 up",
        ),
        ("jobs?limits=5", 'unknown parameter "limits"; did you mean "limit"?'),
        ("machines?limit=1&limit=2", "\"limit\" is given twice: '1' and '2'"),
        ("jobs?candidates=all", "\"candidates\" = 'all': expected true or false"),
        ("decisions?after=-1", f"\"after\" = '-1': expected {SEQUENCE_NUMBER}"),
        (f"decisions?after={2**63}", f"\"after\" = '{2**63}': expected {SEQUENCE_NUMBER}"),
    ],
)
async def test_a_wrong_query_names_parameter_value_and_what_is_right(
    query: str, error: str
) -> None:
    site = SmallSite()
    async with visit(site) as client, client.get(f"/api/v1/{query}") as answer:
        assert answer.status == 400
        assert await answer.json() == {"error": error}
    assert site.asked == []


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/", "/api/v2/status", "/page/", "/api"])
async def test_an_unknown_path_is_told_in_json(path: str) -> None:
    async with visit(SmallSite()) as client, client.get(path) as answer:
        assert answer.status == 404
        assert repr(path) in (await answer.json())["error"]


@pytest.mark.parametrize("name", ["app.py", "..%2Fapp.py", "..%2F..%2Fconfig.py", "page.js%00"])
async def test_only_the_page_s_own_files_are_served(name: str) -> None:
    async with (
        visit(SmallSite()) as client,
        client.get(URL(f"/page/{name}", encoded=True)) as answer,
    ):
        assert answer.status == 404
        assert "error" in await answer.json()


JOB_NAMES = [
    "1042.0",
    'say "hello"; rm -rf',
    "<script>alert(1)</script>",
    "a/b/c",
    "50%",
    "50%2F",
    "Grüße 🐎",
    "x?limit=1#y",
    "..",
    "a+b c",
]


@pytest.mark.parametrize("job", JOB_NAMES)
async def test_a_job_s_name_arrives_as_it_was_meant(job: str) -> None:
    site = SmallSite()
    site.job_names = [job]
    quoted = URL(f"/api/v1/explain/{percent_encoded(job)}", encoded=True)
    async with visit(site) as client, client.get(quoted) as answer:
        assert answer.status == 200, await answer.text()
        assert (await answer.json())["job"] == job
    assert site.asked == [job]


def percent_encoded(text: str) -> str:
    """Return every byte encoded, as a careful client may."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


async def test_slashes_of_a_job_s_name_may_stand_unencoded() -> None:
    site = SmallSite()
    site.job_names = ["a/b/c"]
    async with visit(site) as client, client.get("/api/v1/explain/a/b/c") as answer:
        assert (await answer.json())["job"] == "a/b/c"


async def test_an_unknown_job_is_told_by_its_name() -> None:
    async with visit(SmallSite()) as client, client.get("/api/v1/explain/9.9") as answer:
        assert answer.status == 404
        assert await answer.json() == {"error": "no job '9.9' is known here"}


async def test_readiness_is_503_with_its_reasons_while_something_is_missing() -> None:
    site = SmallSite()
    site.reasons = ["adapter campus: input is 312 s old"]
    async with visit(site) as client:
        async with client.get("/readyz") as answer:
            assert answer.status == 503
            assert await answer.json() == {"ready": False, "reasons": site.reasons}
        async with client.get("/healthz") as answer:
            assert await answer.json() == {"ok": True}


async def test_metrics_come_in_the_format_the_client_accepts() -> None:
    async with visit(SmallSite()) as client:
        wish = {"Accept": "application/openmetrics-text;version=1.0.0"}
        async with client.get("/metrics", headers=wish) as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
            assert answer.headers["Vary"] == "Accept, Accept-Encoding"
            text = await answer.text()
            assert 'outrider_jobs{state="queued"} 3.0\n' in text
            assert text.endswith("# EOF\n")
        async with client.get("/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert 'outrider_jobs{state="queued"} 3.0\n' in await answer.text()


async def test_a_handler_that_raises_is_answered_logged_and_survived(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    site = SmallSite()
    site.broken = True
    async with visit(site) as client:
        async with client.get("/api/v1/status") as answer:
            assert answer.status == 500
            assert await answer.json() == {
                "error": "internal error (please report); details are in the daemon's log"
            }
            assert "X-Content-Type-Options" in answer.headers
        site.broken = False
        async with client.get("/api/v1/status") as answer:
            assert answer.status == 200
        async with client.get("/metrics") as answer:
            assert "outrider_requests_failed_total 1.0" in await answer.text()
    logged = capsys.readouterr().out + caplog.text
    assert "request_failed" in logged
    assert "/api/v1/status" in logged
    assert "the site caught fire" in logged


async def test_big_answers_are_gzipped_for_who_asks() -> None:
    site = SmallSite()
    site.job_names = [f"{number}.0" for number in range(5000)]
    async with visit(site) as client:
        path = "/api/v1/jobs?limit=5000"
        async with client.get(path, headers={"Accept-Encoding": "identity"}) as plain:
            assert "Content-Encoding" not in plain.headers
            expected = await plain.read()
        async with client.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"}) as packed:
            assert packed.headers["Content-Encoding"] == "gzip"
            assert packed.headers["Vary"] == "Accept-Encoding"
            assert int(packed.headers["Content-Length"]) < len(expected) / 10
            assert await packed.read() == expected
        async with client.get("/healthz", headers={"Accept-Encoding": "gzip"}) as small:
            assert "Content-Encoding" not in small.headers
        async with client.get(path, headers={"Accept-Encoding": "br"}) as unpacked:
            assert "Content-Encoding" not in unpacked.headers


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/page.css", "/page/favicon.svg"])
async def test_an_unchanged_part_of_the_page_is_not_sent_again(path: str) -> None:
    async with visit(SmallSite()) as client:
        async with client.get(path) as first:
            tag = first.headers["ETag"]
            assert first.headers["Cache-Control"] == "no-cache"
        async with client.get(path, headers={"If-None-Match": tag}) as again:
            assert again.status == 304
            assert again.headers["ETag"] == tag
            assert await again.read() == b""
        async with client.get(path, headers={"If-None-Match": '"another"'}) as other:
            assert other.status == 200

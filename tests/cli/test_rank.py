"""`outrider rank`: several sites, the best for one more job first, those that say nothing last."""

from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.cli.running import outrider
from tests.cli.test_asking import NOBODY, answer_in_json, serving


def kind(
    wait_s: float | None, utility: float | None, vo: str = "cms", job_class: str = "batch"
) -> dict[str, Any]:
    wait = None if wait_s is None else {"low": wait_s / 2, "median": wait_s, "high": 3 * wait_s}
    return {
        "vo": vo, "class": job_class, "cpus": 1, "estimate_s": None, "n": 5, "wait_s": wait,
        "utility": utility,
    }  # fmt: skip


def site(*kinds: dict[str, Any], **fields: Any) -> type[BaseHTTPRequestHandler]:
    """A daemon that says this of one more job."""
    one_more = {"asked_s": 1e9, "not_said": None, "kinds": list(kinds)}
    answer: dict[str, Any] = {
        "mode": "shadow", "now_s": 1e9, "one_more_job": one_more,
        "site_utility": {"free_machines": 3, "queued_jobs": 9}, **fields,
    }  # fmt: skip

    class Daemon(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/api/v1/utility"
            answer_in_json(self, answer)

        def log_message(self, *_: Any) -> None:
            """Write no access log."""

    return Daemon


@pytest.fixture
def sites() -> Iterator[list[str]]:
    """Addresses: slow but of use, quick and useless, one that does not know, an older one."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(serving(handler))
            for handler in (
                site(kind(3_600.0, 0.9), kind(60.0, 0.99, job_class="interactive")),
                site(kind(60.0, 0.1), kind(5.0, 1.0, vo="atlas")),
                site(kind(None, None)),
                site(one_more_job=None),
            )
        ]


def test_the_greatest_utility_comes_first_or_the_shortest_wait(sites: list[str]) -> None:
    words = ("rank", *sites, NOBODY, "--vo", "cms", "--class", "batch", "--json")
    told = outrider(*words).json()
    rows = {row["site"]: row for row in told["sites"]}
    assert [row["site"] for row in told["sites"]][:2] == sites[:2]
    assert (rows[sites[0]]["utility"], rows[sites[0]]["wait_s"]) == (0.9, 3_600.0)
    assert (rows[sites[0]]["wait_low_s"], rows[sites[0]]["wait_high_s"]) == (1_800.0, 10_800.0)
    assert rows[sites[2]]["why_not"] == "unknown, or no machine could run it"
    assert rows[sites[3]]["why_not"] == "its Outrider is too old"
    assert "no daemon answers" in rows[NOBODY]["why_not"]
    by_wait = outrider(*words, "--by", "wait").json()["sites"]
    assert [row["site"] for row in by_wait][:2] == [sites[1], sites[0]]


def test_each_kind_has_a_line_and_what_is_not_asked_for_is_left_out(sites: list[str]) -> None:
    done = outrider("rank", *sites[:2], "--csv", "-o", "site,vo,class,wait_s")
    assert done.out.splitlines() == [
        "site,vo,class,wait_s",
        f"{sites[1]},atlas,batch,5.0",
        f"{sites[0]},cms,interactive,60.0",
        f"{sites[0]},cms,batch,3600.0",
        f"{sites[1]},cms,batch,60.0",
    ]
    shown = outrider("rank", sites[0], "--class", "batch").out.splitlines()
    assert shown[0].split()[:3] == ["site", "utility", "wait"]
    assert "0.900  60 min (30 min to 3.0 h)" in shown[1]


def test_where_no_wait_is_known_the_answer_is_no(sites: list[str]) -> None:
    done = outrider("rank", sites[2], NOBODY, sites[0], "--vo", "nobody's")
    assert done.code == 1
    assert "no such job arrived there recently" in done.out

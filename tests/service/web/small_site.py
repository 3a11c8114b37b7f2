"""A small site, made by hand: what a daemon could show of itself, and servers that show it."""

import asyncio
import copy
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import msgspec
from aiohttp import web
from msgspec import UNSET

from outrider.model.errors import LedgerError
from outrider.model.reasons import CODE_LABELS
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer
from outrider.service.daemon.daemon_view import SharedAnswers
from outrider.service.metrics import MetricStore, Snapshot
from outrider.service.shapes.jobs import BatchSystem
from outrider.service.shapes.values import JobStart, StartsShown
from outrider.service.views.sentences import (
    policy_lines,
    start_lines,
    starts_summary,
    trial_results,
    trial_summary,
    twin_summary,
)
from outrider.service.web import make_app, serve
from outrider.service.web.access import Access
from outrider.service.web.endpoint import Answer, Call, NotFoundError
from outrider.service.web.endpoints import ENDPOINTS
from outrider.service.web.endpoints.explain import DecisionsQuery
from outrider.service.web.endpoints.jobs import JobsQuery
from outrider.service.web.endpoints.machines import MachinesQuery
from outrider.service.web.endpoints.over_time import JobsOverTimeQuery, UseQuery
from outrider.service.web.endpoints.users_and_vos import UsersQuery, VosQuery
from tests.service.web.small_answers import (
    BATCH_SYSTEM,
    DECISION,
    EXPECTED_STARTS,
    JOB_START,
    NOW,
    ONE_MORE,
    START,
    STATUS,
    USER,
    VOS,
)


class SmallSite:
    """A fake daemon: every answer is a copy that a test may change first.

    Attributes:
        status_answer: what `status` answers.
        job_names: the jobs it knows, all queued.
        expected_starts: what holds for the starts of all.
        job_start: what each row of `jobs` tells of its start.
        state_words: what its batch system calls the states of jobs.
        reasons: why it is not ready; empty: it is.
        broken: `status` raises.
        use_answers: `use` does not raise `LedgerError`.
        use_is_cut: it looks at a part of the runs alone.
        failed_requests: how often something did.
        asked: the query, or the job, of every call, in order.
        on_status: called at every `status`.
        sees_names: whether the last client was one that is shown users' names.
    """

    def __init__(self) -> None:
        self.status_answer = copy.deepcopy(STATUS)
        self.job_names = ["1042.0", "1043.0", "1051.7"]
        self.expected_starts: dict[str, Any] | None = EXPECTED_STARTS
        self.job_start: dict[str, Any] = {
            "expected_start": START,
            "expected_start_answer": "interval",
            "expected_start_under": {"fifo": dict.fromkeys(START, NOW - 180.0), "bandit": None},
        }
        self.state_words = {
            "queued": "Idle", "running": "Running", "suspended": "Suspended", "held": "Held",
        }  # fmt: skip
        self.reasons: list[str] = []
        self.broken = False
        self.use_answers = True
        self.use_is_cut = False
        self.failed_requests = 0
        self.asked: list[object] = []
        self.scraping = asyncio.Lock()
        self.answers = SharedAnswers(cost_s=lambda: 0.0)  # nothing is told again
        self.sees_names = False
        self.on_status: Callable[[], None] = lambda: None

    def app(self, token: str | None = None, access: Access | None = None) -> web.Application:
        """Return the real application, whose endpoints below answer as this site does."""
        endpoints = [
            replace(e, handle=_handler(self, STAND_INS[e.name])) if e.name in STAND_INS else e
            for e in ENDPOINTS
        ]
        view: Any = self  # the other endpoints ask it what they ask the daemon's
        return make_app(view, access or Access(token), endpoints)

    def status(self) -> dict[str, Any]:
        self.on_status()
        if self.broken:
            raise RuntimeError("the site caught fire")
        starts = self.expected_starts
        shown = (
            None
            if starts is None
            else {**starts, "summary": starts_summary(msgspec.convert(starts, StartsShown), NOW)}
        )
        answer = {"code_labels": dict(CODE_LABELS), "expected_starts": shown, **self.status_answer}
        zone = answer["timezone"]
        if twin := answer.get("twin"):
            answer["twin"] = {**twin, "summary": twin_summary(twin, NOW, zone)}
        if trial := answer.get("trial"):
            texts = {"summary": trial_summary(trial, zone), "results": trial_results(trial)}
            answer["trial"] = {**trial, **texts}
        return answer

    def jobs(self, query: JobsQuery) -> dict[str, Any]:
        self.asked.append(query)
        first = 0 if query.after is UNSET else int(query.after)
        rows = [
            {
                "job": name,
                "state": "queued",
                "state_word": "Idle",
                "user": "ada",
                "vo": "physics",
                "class": "batch",
                "cpus": 1,
                "submit_s": NOW - 3600,
                "waiting_s": 3600.0,
                "machine": None,
                "run_s": None,
                "runs": 1,
                "lost_s": 10_800.0,
                "longest_lost_s": 7200.0,
                "pending": {"bandit": {"action": "defer", "reason": "best"}},
                "group": None,
                "reason": "best",
                **copy.deepcopy(self.job_start),
            }
            for name in self.job_names[first : first + query.limit]
        ]
        last = first + len(rows)
        return {
            "mode": "shadow",
            "now_s": NOW,
            "jobs": rows,
            "total": len(self.job_names),
            "state_words": dict(self.state_words),
            "expected_starts": copy.deepcopy(self.expected_starts),
            "next": str(last) if last < len(self.job_names) else None,
        }

    def machines(self, query: MachinesQuery) -> dict[str, Any]:
        self.asked.append(query)
        row = {
            "machine": "lib-017",
            "cluster": "open-access-library",
            "state": "busy",
            "cpus": 4,
            "busy_cpus": 1,
            "active_w": 57.0,
            "inferred": True,
        }
        return {"mode": "shadow", "now_s": NOW, "machines": [row][: query.limit], "total": 1}

    def machine(self, machine: str) -> dict[str, Any]:
        self.asked.append(machine)
        if machine == "gone":
            raise NotFoundError(f"no machine {machine!r} is known here")
        nine_to_five = [1.0 if 9 <= hour < 17 else 0.0 for hour in range(24)]
        return {
            "mode": "shadow", "now_s": NOW, "machine": machine, "cluster": "open-access-library",
            "state": "busy", "since_s": NOW - 7200, "cpus": 4, "busy_cpus": 1, "inferred": False,
            "watts": {
                "now_w": 57.0, "is_measured": False, "active_w": 57.0, "idle_w": 30.0,
                "sleep_w": None,
            },
            "jobs": [{
                "job": "1040.0", "state": "running", "user": "ada", "vo": "physics", "cpus": 1,
                "start_s": NOW - 7200,
            }],
            "jobs_total": 3,
            "runs": [
                {
                    "job": f"{1000 + n}.0", "vo": "physics", "cpus": 1, "start_s": NOW - 20_000,
                    "end_s": NOW - 9000, "run_s": 11_000.0,
                    "lost_because": "failed_start" if n else None,
                }
                for n in range(2)
            ],
            "failed_starts": {
                "within_s": 86_400.0, "tried": 8, "failed": 7, "is_black_hole": True,
                "expected_ratio": 0.02, "low_ratio": 0.3,
            },
            "owner_week": {
                "since_s": NOW - 1_000_000, "sessions": 12,
                "share": [*[nine_to_five] * 5, [0.0] * 24, [None] * 24],
            },
        }  # fmt: skip

    def users(self, query: UsersQuery) -> dict[str, Any]:
        self.asked.append(query)
        return {"mode": "shadow", "now_s": NOW, "users": [USER][: query.limit], "total": 1}

    def vos(self, query: VosQuery) -> dict[str, Any]:
        self.asked.append(query)
        told = {"mode": "shadow", "now_s": NOW, "since_s": NOW - 3600.0}
        return {**told, "vos": VOS[: query.limit], "total": len(VOS), "next": None}

    def use(self, query: UseQuery) -> dict[str, Any]:
        self.asked.append(query)
        if not self.use_answers:
            raise LedgerError("the disk is gone")
        span_s = {"1h": 3_600.0, "24h": 86_400.0, "7d": 604_800.0, "all": 2e6}[query.window]
        begin_s = NOW - span_s
        cpus = {"completed": [4.0] * 120, "thrown_away": [1.0] * 120, "open": [0.5] * 120}
        return {
            "mode": "shadow", "window": query.window, "begin_s": begin_s, "end_s": NOW,
            "is_cut": self.use_is_cut or query.window == "all", "cpus": cpus, "starts": [2] * 120,
            "time_s": [begin_s + n * span_s / 120 for n in range(120)],
            "table_w": {
                "completed": [900.0] * 120, "thrown_away": [50.0] * 120, "open": [50.0] * 120,
            },
            "watts_known_ratio": 0.9,
        }  # fmt: skip

    def jobs_over_time(self, query: JobsOverTimeQuery) -> dict[str, Any]:
        self.asked.append(query)
        bins, step_s = {"1h": (60, 60.0), "24h": (96, 900.0)}.get(query.window, (168, 3600.0))
        begin_s, unknown = NOW - bins * step_s, bins // 4
        none = [None] * unknown
        return {
            "mode": "shadow", "window": query.window, "now_s": NOW, "begin_s": begin_s,
            "step_s": step_s, "known_from_s": begin_s + unknown * step_s,
            "waiting": [*none, *[1234.5] * (bins - unknown)],
            "running": [*none, *[131.0] * (bins - unknown)],
        }  # fmt: skip

    def decisions(self, query: DecisionsQuery) -> dict[str, Any]:
        self.asked.append(query)
        alike = DECISION | {"seq": 4712, "jobs": ["1042.0", "1043.0"]}
        return {"mode": "shadow", "decisions": [alike, DECISION]}

    def explain(self, job: str) -> dict[str, Any]:
        self.asked.append(job)
        if job not in self.job_names:
            raise NotFoundError(f"no job {job!r} is known here")
        view = {
            "name": "bandit",
            "action": "defer",
            "reason": "best",
            "cluster": None,
            "until_s": NOW + 2520,
            "scores": {"queue": 0.41, "compute-nodes": 0.382, "physics-teaching": 0.17},
            "propensity": 0.925,
            "explanation": "Waiting an hour promised more than any free cluster: a run that "
            "starts at 17:00 is often evicted there.",
            "decided_s": NOW - 900,
            "seq": 4711,
            "text": "bandit would keep it queued until 18:22: this choice has worked best so far",
        }
        fifo = view | {
            "name": "fifo",
            "action": "start",
            "reason": "first",
            "cluster": "night-only",
        }
        fifo |= {
            "until_s": None,
            "scores": {},
            "explanation": "The first free machine fits.",
            "text": "fifo would start it on night-only: it is the first in the queue that fits",
            "propensity": 1.0,
        }
        return {
            "job": job,
            "timezone": self.status_answer["timezone"],
            "mode": "shadow",
            "source": "daemon",
            "state": "queued",
            "sentence": f"{job} waits: the batch system has not started it. In shadow: bandit "
            "would keep it queued until 18:22.",
            "cause": f"{job} waits: the batch system has not started it.",
            "held_because": None,
            "batch_system": copy.deepcopy(BATCH_SYSTEM),
            "batch_system_errors": [],
            "now_s": NOW,
            "expected_start": copy.deepcopy(JOB_START),
            "start_lines": list(
                start_lines(
                    msgspec.convert(JOB_START, JobStart),
                    msgspec.convert(BATCH_SYSTEM, BatchSystem),
                    NOW,
                    self.status_answer["timezone"],
                )
            ),
            "alike": {"total": 40, "ahead": 11},
            "waiting_s": 3600.0,
            "since_s": NOW - 3600,
            "runs": [
                {
                    "machine": "lib-017",
                    "cpus": 1,
                    "start_s": NOW - 7200,
                    "end_s": NOW - 3600,
                    "run_s": 3600.0,
                    "lost_because": "owner",
                    "text": "ran on lib-017 from 2026-11-21 15:40:00 UTC for 60 min: evicted: the "
                    "owner of the machine returned",
                }
            ],
            "policies": [view, fifo],
            "policy_lines": policy_lines([view, fifo]),
            "decisions": [DECISION],
        }

    def utility(self) -> dict[str, Any]:
        index: dict[str, Any] = {
            "free_machines": 65,
            "queued_jobs": 86,
            "mean_wait_s": 192.4,
            "fairness": math.inf,
        }
        for energy in ("energy_wh", "energy_measured_wh"):
            index[energy] = STATUS[energy]
        one_more = {"asked_s": NOW, "not_said": None, "kinds": [ONE_MORE]}
        return {"mode": "shadow", "now_s": NOW, "site_utility": index, "one_more_job": one_more}

    def ready(self) -> tuple[bool, list[str]]:
        return not self.reasons, self.reasons

    def names(self, shown: bool) -> Viewer:
        return Viewer(Pseudonyms(b"key"), KnownUsers(), shown)

    def metrics(self) -> Snapshot:
        store = MetricStore({})
        store.set("jobs", len(self.job_names), "queued")
        store.set("requests_failed_total", self.failed_requests)
        return store.snapshot()


STAND_INS: dict[str, Callable[[SmallSite, Call[Any]], Answer]] = {
    "status": lambda site, call: site.status(),
    "jobs": lambda site, call: site.jobs(call.query),
    "machines": lambda site, call: site.machines(call.query),
    "machine": lambda site, call: site.machine(call.request.match_info["machine"]),
    "users": lambda site, call: site.users(call.query),
    "vos": lambda site, call: site.vos(call.query),
    "jobs_over_time": lambda site, call: site.jobs_over_time(call.query),
    "use": lambda site, call: site.use(call.query),
    "decisions": lambda site, call: site.decisions(call.query),
    "explain": lambda site, call: site.explain(call.request.match_info["job"]),
    "utility": lambda site, call: site.utility(),
}
"""Endpoints whose answers tests of the page and of the door want to choose. A new endpoint needs
none: `test_answers` asks all of a living daemon."""


def _handler(
    site: SmallSite, answer: Callable[[SmallSite, Call[Any]], Answer]
) -> Callable[[Call[Any]], Awaitable[Answer]]:
    async def handle(call: Call[Any]) -> Answer:
        site.sees_names = call.sees_names
        return answer(site, call)

    return handle


@asynccontextmanager
async def open_site(site: SmallSite, token: str | None = None) -> AsyncIterator[str]:
    """Serve a site on a free loopback port. Yields its address, without a slash at the end."""
    async with serve(site.app(token), "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def visit(site: SmallSite, token: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a served site; paths are relative to it."""
    async with open_site(site, token) as address, aiohttp.ClientSession(address) as client:
        yield client

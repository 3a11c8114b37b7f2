"""View of expected starts: the contents of `starts.json`, and whether they are valid now."""

import time
from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from outrider.acting.lever_runner import LeverRunner
from outrider.model.quantities import duration
from outrider.service.config.declarations import twin_of
from outrider.service.core.core import Core
from outrider.service.shapes.site import KindNow, OneMoreJob, WaitNow
from outrider.service.shapes.values import (
    ExpectedStart,
    JobStart,
    StartAnswer,
    StartsShown,
    StartsSummary,
    StartUnder,
    VoName,
)
from outrider.service.twin.starts_file import STARTS_NAME, OneMoreForecast, StartInterval
from outrider.service.twin.watch import FRESH_S, TwinWatch
from outrider.service.views.sentences import no_data, starts_summary

_BEHIND_S: Final = 4 * FRESH_S
INTERVAL: Final = "interval"
AT_ONCE: Final = "next_pass"
NOT_KNOWN: Final = "not_known"
NOT_SAID: Final = "not_said"
_NEW_KIND: Final = "a new kind of burst"
_WHY_NOT_KNOWN: Final = {
    "no_room": "no open machine has room for it",
    "no_history": "too few jobs have ended yet of the users whose jobs run or wait before it",
    "new_burst": _NEW_KIND,
}
_NONE_YET: Final = "no forecast has been computed yet"
_OFF: Final = "the configuration turns them off ([twin] every_s, starts_every_s)"
_FAR: Final = "it may not start for weeks"
_NOT_ASKED: Final = "the job came after the last answer, may not start yet, or fits on no machine"


class Kept(NamedTuple):
    """Outrider's own deferral of a job, which is active at the batch system.

    Attributes:
        until_s: when its policy decides again, Unix seconds.
        latest_s: when it ends at the latest; infinite: there is no limit.
    """

    until_s: float
    latest_s: float


def kept_jobs(core: Core, runner: LeverRunner | None) -> dict[str, Kept]:
    """Return the jobs that levers keep in the queue now, by name."""
    found: dict[str, Kept] = {}
    runners = {each.name: each for each in core.runners}
    for thread in runner.threads if runner is not None else ():
        for job, (decision, left_s) in thread.kept.items():
            history, policy = core.merger.normaliser.known_by(job), runners.get(decision.policy)
            if history is None or policy is None:
                continue
            latest_s = policy.latest_start_s(history.number)
            most_s = core.now_s + left_s
            latest_s = most_s if latest_s is None else min(latest_s, most_s)
            until_s = policy.next_look_s(history.number)
            found[job] = Kept(latest_s if until_s is None else min(until_s, latest_s), latest_s)
    return found


class Forecast(Struct, frozen=True):
    """Answer about the start of a job.

    Attributes:
        answer: one of the four words.
        start: the expected start; None without an interval.
        why: why there is none; None if there is one.
    """

    answer: StartAnswer
    start: ExpectedStart | None
    why: str | None


class ExpectedStarts:
    """Expected starts at a moment, under the batch system's rule and under policies.

    *Not known* is an answer: the start cannot be known. *Not said* is no answer, with a reason.

    Args:
        watch: has read the file.
        core: the daemon's, whose policies are the candidates.
        own_clock: the site is simulated, and its clock is not the wall's.
        kept: jobs that Outrider keeps in the queue now (`kept_jobs`).

    Attributes:
        not_said: why nothing is said now; empty: it is.
        under_not_said: under which policies nothing is said, and why; empty: they were not asked
            about at all.
    """

    def __init__(
        self,
        watch: TwinWatch,
        core: Core,
        own_clock: bool,
        kept: Mapping[str, Kept] = MappingProxyType({}),
    ) -> None:
        self._kept = kept
        self._file = watch.starts
        self._age_s = watch.starts_age_s
        self._policies = [runner.name for runner in core.runners]
        self._now_s = core.now_s
        # a site of which nothing is heard stands still; what was said of it grows old all the same
        seen_ago_s = 0.0 if own_clock else time.time() - core.now_s
        if watch.starts_problem:
            self.not_said = watch.starts_problem
        elif self._file is None:
            settings = twin_of(core.config)
            asks = settings.every_s and settings.starts_every_s
            self.not_said = _NONE_YET if asks else _OFF
        elif gaps := no_data(core):
            self.not_said = "; ".join(f"n{gap.text.removeprefix('N')}" for gap in gaps)
        elif seen_ago_s > FRESH_S:
            self.not_said = f"the site was last seen {duration(seen_ago_s)} ago"
        else:
            self.not_said = self._file.problem or self._stale(self._file.asked_s)
        self.under_not_said = self._refused()

    def of(self, job: str) -> Forecast:
        """Return the answer about a job under the batch system's own rule.

        That rule knows nothing of Outrider's own deferrals: no job starts before its own ends.
        """
        if self._file is None or self.not_said:
            return _not_said(self.not_said)
        found = _answer(self._file.jobs, job, self._file.asked_s, self._why_unknown(job))
        return _after(found, self._kept.get(job))

    def kept_until_s(self, job: str) -> float | None:
        """Return until when Outrider keeps a job at the latest; None: it does not, or no limit."""
        kept = self._kept.get(job)
        return None if kept is None or kept.latest_s == inf else kept.latest_s

    def under(self, job: str) -> dict[str, Forecast]:
        """Return the same under each policy that was asked about, by its name."""
        file, refused = self._file, self.under_not_said
        if file is None:
            return {}
        asked_s = file.asked_s if file.candidates_asked_s is None else file.candidates_asked_s
        # what is not known under the batch system's rule is asked under no policy
        unknown = self._why_unknown(job) if file.jobs.get(job) is None else _FAR
        return {
            name: _not_said(refused[name])
            if name in refused
            else _answer(file.candidates[name], job, asked_s, unknown)
            for name in self._policies
            if name in refused or name in file.candidates
        }

    def _why_unknown(self, job: str) -> str:
        code = "" if self._file is None else self._file.unknown.get(job, "")
        return _WHY_NOT_KNOWN.get(code, _NEW_KIND)

    def shown(self) -> StartsShown:
        """Return what holds for all jobs: source, time, rule and scores."""
        file = self._file
        jobs = {} if file is None or self.not_said else file.jobs
        return StartsShown(
            source=STARTS_NAME,
            asked_s=None if file is None else file.asked_s,
            rule=None if file is None else file.discipline or None,
            not_said=self.not_said or None,
            n=len(jobs),
            not_known_n=sum(start is None for start in jobs.values()),
            scores={} if file is None else file.scores,
            under_asked_s=None if file is None else file.candidates_asked_s,
            under_not_said=self.under_not_said,
        )

    def summarised(self) -> StartsSummary:
        """Return the same with a summary in sentences."""
        shown = self.shown()
        return StartsSummary(**asdict(shown), summary=starts_summary(shown, self._now_s))

    def one_more(self) -> OneMoreJob:
        """Return the forecast for one more job of each kind, or why there is none."""
        file = self._file
        asked_s = None if file is None else file.one_more_asked_s
        why = self.not_said
        if not why and asked_s is not None:
            why = self._stale(asked_s) or self._behind(asked_s)
        if not why and asked_s is None:
            why = _NONE_YET
        kinds = [] if file is None or why else [_kind(one) for one in file.one_more]
        return OneMoreJob(asked_s=asked_s, not_said=why or None, kinds=kinds)

    def explained(self, job: str) -> JobStart:
        """Return the part `expected_start` of an explanation; its numbers are in the file."""
        shown, forecast = self.shown(), self.of(job)
        plans = {} if self._file is None or self.not_said else self._file.planned
        return JobStart(
            answer=forecast.answer,
            start=forecast.start,
            why=forecast.why,
            source=shown.source,
            asked_s=shown.asked_s,
            rule=shown.rule,
            scores=shown.scores,
            planned_s=plans.get(job),
            under=[
                StartUnder(policy=name, answer=one.answer, start=one.start, why=one.why)
                for name, one in self.under(job).items()
            ],
            under_asked_s=shown.under_asked_s,
        )

    def _refused(self) -> dict[str, str]:
        file = self._file
        if file is None or not (file.candidates or file.candidate_problems):
            return {}  # nobody asks, or no job waited when somebody did
        asked_s = file.candidates_asked_s
        stale = "" if asked_s is None else self._stale(asked_s) or self._behind(asked_s)
        why = {
            name: self.not_said
            or file.candidate_problems.get(name)
            or stale
            or ("" if name in file.candidates else "the twin process did not compute it")
            for name in self._policies
        }
        return {name: reason for name, reason in why.items() if reason}

    def _stale(self, asked_s: float) -> str:
        if asked_s <= 0.0:  # it was asked before the daemon had its first event
            return _NONE_YET
        age_s = self._age_s(asked_s, self._now_s)
        if age_s > FRESH_S:
            return f"the last answer is {duration(age_s)} old"
        return "the clock was put back" if age_s < -FRESH_S else ""

    def _behind(self, asked_s: float) -> str:
        """Return why an answer is too far behind a simulated site's clock; empty: it is not."""
        behind_s = self._now_s - asked_s
        return f"the last answer is {duration(behind_s)} old" if behind_s > _BEHIND_S else ""


def _answer(
    starts: dict[str, StartInterval | None], job: str, asked_s: float, unknown: str
) -> Forecast:
    if job not in starts:
        return _not_said(_NOT_ASKED)
    start = starts[job]
    if start is None:
        return Forecast(NOT_KNOWN, None, unknown)
    expected = ExpectedStart(start.low_s, start.median_s, start.high_s)
    return Forecast(AT_ONCE if start.high_s <= asked_s else INTERVAL, expected, None)


def _after(found: Forecast, kept: Kept | None) -> Forecast:
    """Return a forecast with no start before the end of a deferral."""
    if kept is None or found.start is None:
        return found
    latest_s = kept.latest_s if kept.latest_s < inf else kept.until_s
    low_s, median_s = (
        max(at_s, kept.until_s) for at_s in (found.start.low_s, found.start.median_s)
    )
    start = ExpectedStart(low_s, median_s, max(found.start.high_s, latest_s))
    return Forecast(INTERVAL, start, None)


def _not_said(why: str) -> Forecast:
    return Forecast(NOT_SAID, None, why)


def _kind(one: OneMoreForecast) -> KindNow:
    wait = one.wait_s
    return KindNow(
        vo=VoName(one.vo),
        class_=one.job_class,
        cpus=one.cpus,
        estimate_s=one.estimate_s,
        n=one.n,
        wait_s=None if wait is None else WaitNow(wait.low, wait.median, wait.high),
        utility=one.utility,
    )

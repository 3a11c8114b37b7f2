"""The twin process: it runs the twin periodically and stores the result in the state directory."""

import contextlib
import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from outrider.api.policy import Policy
from outrider.journal import Journal
from outrider.journal.journal_events import last_moment_s
from outrider.journal.records import RunRecord
from outrider.model.errors import LedgerError, OutriderError
from outrider.plugins.finding import make_policy
from outrider.service.config.declarations import acting_of, policies_of, twin_of
from outrider.service.config.loaded import LoadedConfig, load_config
from outrider.service.config.reading import JOURNAL_NAME, state_folder
from outrider.service.host.private_folder import open_owned
from outrider.service.twin import twin_file
from outrider.service.twin.twin_file import Present, stamp_of
from outrider.twin.answer import finite_or_none
from outrider.twin.asking import ask_twin

# -- one run of the twin ---------------------------------------------------------------------------
# One run of the twin for the policies of a configuration. An error becomes a refused result.

_NO_ANSWER: Final[dict[str, Any]] = {
    "window": None, "incumbent": None, "longest_deferral_s": None, "fidelity": None,
    "refused": None, "past": {},
    "next": None, "next_refused": None, "candidates_refused": {}, "fitted": {}, "basis": {},
}  # fmt: skip


class Asked(NamedTuple):
    """The outcome of one run of the twin.

    Attributes:
        answer: the result, as ``outrider twin --json``.
        failed: the twin could not run; a later try may succeed.
    """

    answer: dict[str, Any]
    failed: bool = False


def no_answer(why: str) -> dict[str, Any]:
    """Return an empty result with the reason why there is none."""
    return _NO_ANSWER | {"refused": why}


def candidates_of(loaded: LoadedConfig) -> dict[str, dict[str, Any]]:
    """Return the policies to evaluate, with their settings: those that can be created."""
    return {
        name: dict(given)
        for name, given in policies_of(loaded.config).items()
        if f"policies.{name}" not in loaded.broken
    }


def ask(loaded: LoadedConfig, journal: Path) -> Asked:
    """Run the twin for the policies of a configuration.

    Args:
        loaded: the configuration.
        journal: journal of its daemon, which may be writing it.
    """
    candidates = candidates_of(loaded)
    if not candidates:
        why = "; ".join(loaded.broken.values()) or "no policy is configured"
        return Asked(no_answer(f"no policy can be created: {why}"), failed=True)
    try:
        return Asked(_answer(loaded, journal, candidates))
    except OutriderError as error:
        return Asked(no_answer(str(error)), failed=True)
    except Exception as error:
        log.exception("twin_failed")
        why = f"internal error, or a fault of a policy: {type(error).__name__}: {error}"
        return Asked(no_answer(why), failed=True)


def _answer(
    loaded: LoadedConfig, journal: Path, candidates: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    settings = twin_of(loaded.config)
    return ask_twin(
        journal, list(candidates), maker_of(loaded, candidates), replicates=settings.replicates,
        next_weeks=settings.next_weeks, seed=settings.seed,
        longest_deferral_s=acting_of(loaded.config).longest_deferral_s,
    ).to_json()  # fmt: skip


def maker_of(
    loaded: LoadedConfig, candidates: Mapping[str, Mapping[str, Any]]
) -> Callable[[str, int], Policy]:
    """Return a factory of policies: a candidate with its settings, others with their defaults."""

    def make(name: str, seed: int) -> Policy:
        options = dict(candidates.get(name, {}))
        preset = options.pop("preset", None)
        return make_policy(name, options, seed, f"{loaded.source} [policies.{name}]", preset)

    return make


# -- cycle -----------------------------------------------------------------------------------------

LOCK_NAME: Final = "twin.lock"
_LOOK_S: Final = 5.0
"""Seconds between two checks of the configuration file and of the time."""
_PRESENT_S: Final = 3_600.0
"""Seconds between two computations of load and waste."""
_RETRY_S: Final = 900.0
"""Seconds until a retry after the first failed run; then twice as long each time."""
_LOCK_WITHIN_S: Final = 15.0
_PARENT_POLL_S: Final = 0.5
_ENDS_WITHIN_S: Final = 30.0
"""Seconds to exit: at a low priority on busy cores even that takes time."""
log = structlog.get_logger()


class TwinCycle:
    """Scheduler of the twin's runs.

    Args:
        loaded: the configuration; its file is read again when it has changed.
        clock: returns Unix seconds.
        sleep: sleeps for so many seconds.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.loaded = loaded
        self._clock = clock
        self._sleep = sleep
        self.folder = state_folder(loaded)
        self.journal = self.folder / JOURNAL_NAME
        self._present = PresentLoad(self.journal)
        self._present_at: float | None = None
        self._file_stamp = stamp_of(Path(loaded.source))
        self._state: dict[str, Any] = {}

    def run(self) -> None:
        """Run the twin periodically; return once the configuration sets `every_s` to 0.

        Raises:
            LedgerError: another twin process uses this state directory already.
        """
        with locked(self.folder):
            self._begin()
            while (every_s := twin_of(self.loaded.config).every_s) > 0:
                wait_s = self._wait_s(every_s)
                if wait_s <= 0:
                    self.ask_now()
                    continue
                self._look_at_present()
                self._sleep(min(wait_s, _LOOK_S))
                self._follow_file()

    def once(self) -> Asked:
        """Run the twin once, now. Raises as `run`."""
        with locked(self.folder):
            self._begin()
            return self.ask_now()

    def ask_now(self) -> Asked:
        """Run the twin and write its result; until then the previous result stays in the file."""
        began_s = self._clock()
        self._note(asking_since_s=began_s)
        try:
            asked = ask(self.loaded, self.journal)
        except SystemExit:  # a stop was requested: that is no failure
            self._note(asking_since_s=None)
            raise
        took_s = max(0.0, self._clock() - began_s)
        why = asked.answer["refused"]
        if why is None:
            log.info("twin_answered", took_s=round(took_s, 1))
        else:
            log.warning("twin_refused", reason=why, took_s=round(took_s, 1))
        self._note_answer(began_s, took_s, asked)
        return asked

    def _wait_s(self, every_s: float) -> float:
        """Return the seconds until the next run is due; 0 or less: it is due now."""
        state, bound_s = self._state, self._longest_deferral_s()
        candidates = _as_written(candidates_of(self.loaded))
        asked_s, failures = state.get("asked_s"), int(state.get("failures", 0))
        if asked_s is None or state.get("candidates") != candidates:
            return 0.0
        if state.get("longest_deferral_s", bound_s) != bound_s:
            return 0.0
        after_s = min(every_s, _RETRY_S * 2.0 ** min(failures - 1, 30)) if failures else every_s
        after_s = max(after_s, 2.0 * float(state.get("took_s") or 0.0))
        gone_s = self._clock() - float(asked_s)
        return after_s - gone_s if gone_s >= 0 else 0.0  # the clock was set back

    def _begin(self) -> None:
        """Load the state from the file.

        A run that the last process did not finish, because it was killed, counts as a failure: it
        may fail again.
        """
        self._state = self._written()
        since_s = self._state.get("asking_since_s")
        if since_s is not None:
            why = "the twin process was killed before it had a result (out of memory?)"
            log.warning("twin_result_missing", error=why)
            self._note_answer(float(since_s), 0.0, Asked(no_answer(why), failed=True))

    def _note_answer(self, asked_s: float, took_s: float, asked: Asked) -> None:
        self._note(
            asked_s=asked_s,
            took_s=took_s,
            answer=asked.answer,
            candidates=_as_written(candidates_of(self.loaded)),
            longest_deferral_s=self._longest_deferral_s(),
            next_weeks=twin_of(self.loaded.config).next_weeks,
            failures=int(self._state.get("failures", 0)) + 1 if asked.failed else 0,
            asking_since_s=None,
            present=self._present_now() or self._state.get("present"),
        )

    def _longest_deferral_s(self) -> float | None:
        return finite_or_none(acting_of(self.loaded.config).longest_deferral_s)

    def _look_at_present(self) -> None:
        now_s = time.monotonic()
        if self._present_at is not None and now_s - self._present_at < _PRESENT_S:
            return
        self._present_at = now_s
        present = self._present_now()
        if present is not None:
            self._note(present=present)

    def _present_now(self) -> dict[str, Any] | None:
        try:
            present = self._present.look()
        except LedgerError as error:
            log.warning("present_load_unavailable", error=str(error))
            return None
        return None if present is None else msgspec.structs.asdict(present)

    def _follow_file(self) -> None:
        """Read the configuration again if its file has changed; ignore an invalid one."""
        stamp = stamp_of(Path(self.loaded.source))
        if stamp == self._file_stamp:
            return
        self._file_stamp = stamp
        try:
            self.loaded = load_config(Path(self.loaded.source))
        except OutriderError as error:
            log.error("config_reload_failed", error=str(error))

    def _written(self) -> dict[str, Any]:
        """Return the contents of the file; empty if it is damaged or not the twin's."""
        try:
            if twin_file.read(self.folder) is None:
                return {}
            return twin_file.read_plain(self.folder) or {}
        except twin_file.TwinFileError as error:
            log.warning("twin_file_unreadable", error=str(error))
            return {}

    def _note(self, **fields: Any) -> None:
        """Update the state and write it; if the disk is full, the next write stores it."""
        self._state |= fields
        try:
            twin_file.write_plain(self.folder, self._state)
        except OSError as error:
            log.error("twin_state_not_saved", error=str(error))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a state directory: one twin process at a time.

    Raises:
        LedgerError: another process holds it, or the folder cannot be written.
    """
    try:
        descriptor = open_owned(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise LedgerError(
            f"{folder / LOCK_NAME}: {error.strerror}; expected the state directory of a "
            "daemon; run as its user"
        ) from error
    with os.fdopen(descriptor) as file:
        deadline_s = time.monotonic() + _LOCK_WITHIN_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > deadline_s:
                    raise LedgerError(f"{folder}: another process runs the twin there") from error
                time.sleep(0.2)
        yield


def lower_priority(nice: int) -> None:
    """Use one core at most, and raise the nice value of this process; never lower it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with contextlib.suppress(OSError):
        os.nice(max(0, nice - os.nice(0)))


def exit_on_signals(parent: int | None) -> None:
    """Raise `SystemExit` on SIGTERM, on SIGINT, and when the parent process is gone.

    If the parent is gone and the exit takes longer than half a minute, the process is ended.

    Args:
        parent: process id of the parent; None: there is none to follow.
    """

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ENDS_WITHIN_S)
    os._exit(1)


def _as_written(plain: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(plain))


# -- present ---------------------------------------------------------------------------------------
# Load and waste of the last weeks: they show whether a forecast is still valid.

WINDOW_S: Final = 14 * 86_400.0


class PresentLoad:
    """Load and waste of the runs that ended in a journal's last two weeks.

    It remembers which rows are older, so that each call reads little more than those weeks.

    Args:
        path: the journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._older = 0

    def look(self) -> Present | None:
        """Return load and waste now; None if the journal has no run.

        Raises:
            LedgerError: the journal cannot be read.
        """
        with Journal(self._path, read_only=True) as journal:
            runs = journal.runs(self._older)
            first = next(runs, None)
            if first is None and self._older:  # the journal was replaced by a new one
                runs, self._older = journal.runs(), 0
                first = next(runs, None)
            if first is None:
                return None
            return self._sum(chain([first], runs), last_moment_s(journal))

    def _sum(self, runs: Iterator[tuple[int, RunRecord]], last_s: float | None) -> Present:
        ended = list(runs)
        until_s = last_s if last_s is not None else max(run.end_s for _, run in ended)
        begin_s = until_s - WINDOW_S
        good_s = bad_s = 0.0
        for number, run in ended:
            if run.end_s <= begin_s:
                self._older = number
            elif run.reason:
                bad_s += run.cpus * run.run_s
            else:
                good_s += run.cpus * run.run_s
        work_s = good_s + bad_s
        return Present(until_s, work_s / WINDOW_S, bad_s / work_s if work_s else None)

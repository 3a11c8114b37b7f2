"""In which state the twin's answer, its forecast, its candidates and expected starts are: one each.

Metrics give figures only in the state in which they hold, so that none that is old or refused can
be taken for one that holds.
"""

from typing import Final

from outrider.service.config.declarations import Config, policies_of, twin_of
from outrider.service.twin.starts_file import StartsFile
from outrider.service.twin.twin_file import TwinFile
from outrider.service.twin.watch import FRESH_S
from outrider.service.views.twin import expired, is_stale, other_settings
from outrider.twin.answer_file import TwinAnswer

NONE: Final = "none"
ANSWERED: Final = "answered"
REFUSED: Final = "refused"
FAILED: Final = "failed"
STALE: Final = "stale"
OFF: Final = "off"
HOLDS: Final = "holds"
EXPIRED: Final = "expired"
CHANGED: Final = "changed"
NOT_ASKED: Final = "not_asked"

ANSWER_STATES: Final = (NONE, ANSWERED, REFUSED, FAILED, STALE, OFF)
FORECAST_STATES: Final = (NONE, HOLDS, EXPIRED, REFUSED)
CANDIDATE_STATES: Final = (NONE, ANSWERED, REFUSED, CHANGED, NOT_ASKED)
STARTS_STATES: Final = (NONE, ANSWERED, FAILED, STALE)


def answer_state(file: TwinFile | None, config: Config, now_s: float) -> str:
    """The state of the answer as a whole, one of `ANSWER_STATES`.

    ``refused``: the twin cannot know; ``failed``: it could not be asked; ``off``: `every_s` is 0,
    and no answer is fresh.

    Args:
        file: what stands in `twin.json`.
        config: the configuration in force.
        now_s: Unix seconds.
    """
    is_asked = twin_of(config).every_s > 0
    if file is None or file.answer is None or file.asked_s is None:
        return NONE if is_asked else OFF
    if is_stale(file, config, now_s):
        return STALE if is_asked else OFF
    if file.answer.refused is None:
        return ANSWERED
    return FAILED if file.failures else REFUSED


def forecast_state(file: TwinFile | None, config: Config, now_s: float) -> str:
    """The state of the forecast, one of `FORECAST_STATES`; arguments as of `answer_state`."""
    if file is None or file.answer is None or answer_state(file, config, now_s) != ANSWERED:
        return NONE
    if file.answer.next is None:
        return NONE if file.answer.next_refused is None else REFUSED
    return HOLDS if expired(file) is None else EXPIRED


def candidate_states(file: TwinFile | None, config: Config, now_s: float) -> dict[str, str]:
    """The state of each configured policy, one of `CANDIDATE_STATES`.

    ``none``: there is no answer about any; ``changed``: it is configured otherwise now than when
    the twin was asked. Arguments as of `answer_state`.
    """
    policies = policies_of(config)
    if file is None or file.answer is None or answer_state(file, config, now_s) != ANSWERED:
        return dict.fromkeys(policies, NONE)
    changed = other_settings(file, config)
    return {name: _candidate_state(name, file, file.answer, changed) for name in policies}


def _candidate_state(name: str, file: TwinFile, answer: TwinAnswer, changed: list[str]) -> str:
    if name not in file.candidates:
        return NOT_ASKED
    if name in changed:
        return CHANGED
    if name in answer.candidates_refused:
        return REFUSED
    return ANSWERED if name in answer.past else NONE


def starts_state(starts: StartsFile | None, age_s: float | None) -> str:
    """The state of expected starts, one of `STARTS_STATES`.

    Args:
        starts: what stands in `starts.json`.
        age_s: how old that is, seconds; None: there is nothing.
    """
    if starts is None or age_s is None:
        return NONE
    if starts.problem is not None:
        return FAILED
    return ANSWERED if abs(age_s) <= FRESH_S else STALE

"""Why a job waits, as PBS says it."""

from collections.abc import Mapping
from typing import Final

from outrider.api import WaitingReason
from outrider_adapters.pbs.execution_times import DEFERRED

_WAITS: Final = frozenset("QHWT")
_NEVER: Final = "Can Never Run"
"""What the scheduler of OpenPBS begins its comment with."""

_HOLDS: Final = {
    "u": ("its user", "qrls -h u {job}"),
    "o": ("an operator", "qrls -h o {job} (by an operator)"),
    "s": ("the system or a manager", "qrls -h s {job} (by a manager)"),
    "p": ("a wrong password", "qrls -h p {job} (by a manager)"),
}


def waiting_reason(job: str, ad: Mapping[str, str], is_ours: bool = False) -> WaitingReason | None:
    """Why a job is not running; None for one that is, or that has left.

    Args:
        job: its name.
        ad: its attributes; the comment is the scheduler's or an operator's, no user writes it.
        is_ours: whether a time for which it waits is one that Outrider gave it.
    """
    state, comment = ad.get("job_state", ""), ad.get("comment", "").strip()
    if state not in _WAITS:
        return None
    said = [f"PBS says: {comment}"] if comment else []
    if state == "W":
        when = ad.get("Execution_Time", "its time")
        if is_ours:
            sentence = f"it waits until {when}, because Outrider asked for that: no user did"
            return WaitingReason(code=DEFERRED, sentence=sentence)
        remedy = f"let it begin now: qalter -a $(date +%Y%m%d%H%M) {job}"
        return WaitingReason(code="W", sentence=f"it waits until {when}", remedies=(remedy,))
    if depend := ad.get("depend", ""):
        remedy = f"let it wait no more: qalter -W depend= {job}"
        sentence = "; ".join([f"it waits for other jobs: {depend}", *said])
        return WaitingReason(
            code=state, sentence=sentence, remedies=("wait for these jobs", remedy)
        )
    holds = [_HOLDS[letter] for letter in ad.get("Hold_Types", "") if letter in _HOLDS]
    if state == "H":
        who = " and ".join(name for name, _ in holds) or "somebody"
        release = tuple(f"release it: {command.format(job=job)}" for _, command in holds)
        sentence = "; ".join([f"it is held by {who}", *said])
        return WaitingReason(code=state, sentence=sentence, remedies=release)
    if comment.startswith(_NEVER):
        remedy = f"ask for less, or for something else: qalter -l ... {job}"
        return WaitingReason(code=state, sentence=said[0], never=True, remedies=(remedy,))
    sentence = said[0] if said else "its scheduler has not said anything of it yet"
    return WaitingReason(code=state, sentence=sentence, remedies=("wait, or ask for less",))

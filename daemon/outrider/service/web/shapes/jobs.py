"""The shape of a list of jobs. It follows the rules of `outrider.service.web.shapes.values`."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.service.web.shapes.expected_start import ExpectedStart, StartAnswer, StartsShown
from outrider.service.web.shapes.values import Count, JobState, Mode, Unknown


class PendingDecision(Struct):
    """What a policy last chose for a job, and why."""

    action: str
    reason: str


class JobRow(Struct, rename={"class_": "class"}):
    """One job now."""

    job: str
    state: JobState
    user: str
    vo: str
    class_: str
    cpus: Count
    submit_s: Unknown
    waiting_s: Unknown
    machine: str | None
    run_s: Unknown
    runs: Count
    lost_s: Annotated[float, Meta(ge=0, description="Of all runs thrown away so far, together.")]
    longest_lost_s: Annotated[float, Meta(ge=0, description="Longest run thrown away so far.")]
    pending: dict[str, PendingDecision]
    state_word: Annotated[
        str, Meta(description="The batch system's own word for `state`; ours where it has none.")
    ] = ""
    group: Annotated[
        str | None, Meta(description="Of the machine that it is on; null: it is on none.")
    ] = None
    reason: Annotated[
        str | None,
        Meta(
            description="Why it does not run: of a job that waits, the reason of the first policy "
            "that has decided about it; of one that is held, the batch system's words, where this "
            "client is shown users' names."
        ),
    ] = None
    expected_start: Annotated[
        ExpectedStart | None,
        Meta(
            description="Under the batch system's own rule, by `outrider run-twin`; null: see "
            "`expected_start_answer`."
        ),
    ] = None
    expected_start_answer: Annotated[
        StartAnswer | None,
        Meta(
            description="`not_known`: nobody can know. `not_said`: there is no answer, or no "
            "young one. Null: it does not wait."
        ),
    ] = None
    expected_start_under: Annotated[
        dict[str, ExpectedStart | None] | UnsetType,
        Meta(
            description="With `candidates`: the same if a policy were in force, by its name; null: "
            "not known; a policy that is not there: not said."
        ),
    ] = UNSET


class Jobs(Struct):
    """Jobs the daemon knows now; `total` counts those on other pages too.

    A job that keeps its place in the order stands on exactly one page, however many jobs come or
    go between two; to wait or to run on changes no place.
    """

    mode: Mode
    now_s: float
    jobs: list[JobRow]
    total: Count
    state_words: Annotated[
        dict[JobState, str], Meta(description="The words of `state_word`, by state.")
    ] = {}
    expected_starts: Annotated[
        StartsShown | None, Meta(description="What holds for the expected starts of all.")
    ] = None
    next: Annotated[
        str | None, Meta(description="Pass it as `after` for what follows; null: nothing does.")
    ] = None

"""What the paper claims of polling: sections 3.1.1, 3.1.3, 4.1.1 and 5.2."""

from collections.abc import Iterator

from outrider_lab.papers.automata.grid import (
    BURSTY,
    BY_JOBS,
    COME_AND_GO,
    NO_FLOOR,
    PATTERNS,
    POLLS,
    ROUND_ROBIN,
    STEADY,
)
from outrider_lab.papers.automata.measures import NO_FIGURE, Seed, of_users
from outrider_lab.reporting.claims import Claim
from outrider_lab.reporting.judging import Stated, Statistic, ratio

_WHERE = {STEADY: "3.1.3", BURSTY: "5.2", COME_AND_GO: "5.2"}
_TAKES = {"one": "a poll takes one job", "backlog": "a poll takes the whole backlog"}


def claims_of_users() -> Iterator[Stated[Seed]]:
    """The automaton beside round robin, the reward by jobs, and the floor."""
    for poll in POLLS:
        yield Stated(
            Claim(
                f"a user is polled more probably only when there is a job; {_TAKES[poll]}",
                "3.1.1",
                NO_FIGURE,
                "polls in vain, automaton (L_R-P) over round robin",
                high=1.0,
            ),
            _beside_turns("empty_ratio", STEADY, poll),
        )
        for pattern in PATTERNS:
            yield Stated(
                Claim(
                    f"users are served as they need; {pattern} users, {_TAKES[poll]}",
                    _WHERE[pattern],
                    NO_FIGURE if pattern == STEADY else "future work",
                    "mean wait, automaton (L_R-P) over round robin",
                    high=1.0,
                ),
                _beside_turns("wait", pattern, poll),
            )
    heavy = "heavy_wait_ratio"
    yield Stated(
        Claim(
            "users who submit more jobs are preferred by equation 4.1 (corrected)",
            "4.1.1",
            NO_FIGURE,
            "wait of the busiest quarter over that of the others, with it over without",
            high=1.0,
        ),
        ratio(of_users(BY_JOBS, heavy, STEADY, "one"), of_users("L_R-P", heavy, STEADY, "one")),
    )
    yield Stated(
        Claim(
            "a floor under the draws shortens the longest starvation",
            "not in the paper: ours",
            "not stated",
            "longest starvation with the floor over that without, bursty users, one job a poll",
            high=1.0,
        ),
        ratio(
            of_users("L_R-P", "starvation", BURSTY, "one"),
            of_users(NO_FLOOR, "starvation", BURSTY, "one"),
        ),
    )


def _beside_turns(figure: str, pattern: str, poll: str) -> Statistic[Seed]:
    return ratio(
        of_users("L_R-P", figure, pattern, poll), of_users(ROUND_ROBIN, figure, pattern, poll)
    )

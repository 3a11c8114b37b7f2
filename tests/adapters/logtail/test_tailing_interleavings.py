"""Tests of random orders of writes, rotations, truncations and restarts: no record is lost."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.logtail.following import Followed, job_record, names
from tests.suite.examples import examples

ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 6)),
    st.tuples(st.just("half"), st.integers(1, 60)),
    st.tuples(st.sampled_from(["poll", "settle", "rename", "truncate", "restart"]), st.just(0)),
)


class Writer:
    """Writes numbered records; a half one is completed before anything else is written."""

    def __init__(self, log: Followed) -> None:
        self.log = log
        self.count = 0
        self.rest = b""

    def complete(self) -> None:
        self.log.append(self.rest)
        self.rest = b""

    def append(self, number: int) -> None:
        self.complete()
        for _ in range(number):
            self.count += 1
            self.log.append(job_record(self.count))

    def half(self, size: int) -> None:
        self.complete()
        self.count += 1
        whole = job_record(self.count)
        self.log.append(whole[:size])
        self.rest = whole[size:]


@settings(max_examples=examples(150))
@given(actions=st.lists(ACTIONS, max_size=25))
def test_each_record_is_given_once_in_any_interleaving(actions: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Followed(Path(folder) / "EventLog")
        writer = Writer(log)
        writer.append(1)
        log.poll()  # from now on the tail knows the log
        for action, number in actions:
            if action == "append":
                writer.append(number)
            elif action == "half":
                writer.half(number)
            elif action == "poll":
                log.poll()
            elif action == "settle":
                log.settle()
            elif action == "restart":
                log.restart()
            else:
                writer.complete()
                if action == "rename":
                    log.rename()
                else:
                    for _ in range(12):  # more than there can be rotated files to finish
                        log.settle()
                    log.copy_and_truncate()
                writer.append(1)
        writer.complete()
        for _ in range(30):
            log.settle()
        log.tail.close()
        assert log.jobs == names(1, writer.count)
        assert not log.rejected

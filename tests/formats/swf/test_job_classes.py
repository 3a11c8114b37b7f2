"""Interactive jobs of a workload file: by users' declarations, never by their run times."""

from pathlib import Path

import numpy as np
import pytest

from outrider.formats.job_classes import class_rule
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError
from tests.fixtures.workload_files import HEADER, file_of, row

NAMED = HEADER + (
    "; Queues: how they are called\n; Queue: 1 short\n; Queue:  2  [Interactive:4] (15 min)\n"
    "; Partition: 7 - login nodes\n"
)


def read(folder: Path, word: str | None, *rows: str, header: str = HEADER) -> Workload:
    rule = None if word is None else class_rule(word)
    return read_swf(file_of(folder, *rows, header=header), class_by=rule)


def interactive(workload: Workload) -> list[str]:
    """Names of the interactive jobs; all others are batch."""
    assert set(workload.job_class) <= {"interactive", "batch"}
    return [
        name
        for name, job_class in zip(workload.job_names, workload.job_class, strict=True)
        if job_class == "interactive"
    ]


JOBS = (
    row(1, 0, 5000, time_asked=899.9, queue=1, partition=7, user=11),
    row(2, 1, 5, time_asked=900, queue=2, partition=8, user=12),
    row(3, 2, 5, queue=2, user=12),
    row(4, 3, 5, time_asked=0, partition=7),
)

RULES = [
    ("requested:900", ["1"]),
    ("requested:900.5", ["1", "2"]),
    ("requested:0", []),
    ("queue:interactive", ["2", "3"]),
    ("queue:SHORT", ["1"]),
    ("queue:1,interactive", ["1", "2", "3"]),
    ("partition:login", ["1", "4"]),
    ("partition:8", ["2"]),
    ("none", []),
    ("truth:5000", ["2", "3", "4"]),
    ("truth:5", []),
]


@pytest.mark.parametrize(("word", "expected"), RULES)
def test_a_rule_takes_what_it_names(tmp_path: Path, word: str, expected: list[str]) -> None:
    workload = read(tmp_path, word, *JOBS, header=NAMED)
    assert interactive(workload) == expected
    assert workload.class_source == word


def test_users_are_listed_in_a_file_one_a_line(tmp_path: Path) -> None:
    users = tmp_path / "at-the-screen.txt"
    users.write_text("# who sits before it\n12  # the tester\n\n99\n", encoding="utf-8")
    workload = read(tmp_path, f"user:{users}", *JOBS)
    assert interactive(workload) == ["2", "3"]
    assert workload.class_source == f"user:{users}"


def test_without_a_rule_the_queue_that_is_called_interactive_counts(tmp_path: Path) -> None:
    workload = read(tmp_path, None, *JOBS, header=NAMED)
    assert (interactive(workload), workload.class_source) == (["2", "3"], "queue:interactive")


def test_without_such_a_queue_requests_count_where_there_are_any(tmp_path: Path) -> None:
    workload = read(tmp_path, None, *JOBS)
    assert (interactive(workload), workload.class_source) == (["1"], "requested:900")


def test_without_requests_all_are_batch_however_short_they_ran(tmp_path: Path) -> None:
    workload = read(tmp_path, None, row(1, 0, 5), row(2, 0, 5000))
    assert (interactive(workload), workload.class_source) == ([], "none")
    assert np.isnan(workload.estimate_s).all()


@pytest.mark.parametrize("word", [None, "requested:900", "queue:2", "partition:7", "none"])
def test_how_long_a_job_ran_gives_no_class_nor_estimate(tmp_path: Path, word: str | None) -> None:
    swapped = [line.replace(" 5000 ", " 5 ") if " 5000 " in line else line for line in JOBS]
    assert swapped != list(JOBS)
    read_both = [read(tmp_path, word, *rows, header=NAMED) for rows in (JOBS, swapped)]
    one, other = read_both
    assert one.run_s.tolist() != other.run_s.tolist()
    assert one.job_class == other.job_class
    np.testing.assert_array_equal(one.estimate_s, other.estimate_s)


REFUSED = [
    ("", "no such rule"),
    ("request:900", 'did you mean "requested"?'),
    ("none:3", "expected requested:S"),
    ("requested", "expected requested:S with S seconds, 0 or more, as requested:900"),
    ("requested:-1", "0 or more"),
    ("requested:inf", "0 or more"),
    ("truth:nan", "expected truth:S"),
    ("queue:", "expected queue:NAME,..., as queue:interactive"),
    ("queue:a,,b", "expected queue:NAME"),
    ("user:", "names no user; expected user:FILE"),
    ("user:/nowhere/at/all", "cannot be read: No such file"),
]


@pytest.mark.parametrize(("word", "why"), REFUSED)
def test_a_word_that_is_no_rule_is_refused_with_an_example(word: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        class_rule(word)
    assert f'--class-by "{word}"' in str(refused.value)
    assert why in str(refused.value)


ABSENT = [
    ("queue:fast", r'desk.swf: queue:fast: no queue "fast"; expected 1 \(short\), 2 \(Inter'),
    ("partition:fast", r'no partition "fast"; expected 7 \(login\), 8$'),
]


@pytest.mark.parametrize(("word", "why"), ABSENT)
def test_what_the_file_has_not_is_refused_with_what_it_has(
    tmp_path: Path, word: str, why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why):
        read(tmp_path, word, *JOBS, header=NAMED)


def test_users_without_a_job_are_refused_with_those_who_have_some(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"of its 1 users; expected .* own: 11, 12"):
        read(tmp_path, f"user:{tmp_path / 'users'}", *JOBS)


def test_many_queues_are_named_in_their_order_and_not_all(tmp_path: Path) -> None:
    jobs = [row(n, n, 5, queue=30 - n) for n in range(1, 15)]
    with pytest.raises(ConfigurationError, match=r"expected 16, 17, .*, 25 or 4 others$"):
        read(tmp_path, "queue:3", *jobs)

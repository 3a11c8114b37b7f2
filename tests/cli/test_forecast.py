"""``outrider forecast``: answers for every waiting job of a log, and how far they held."""

import csv
from pathlib import Path

import pytest

from outrider.model.localtime import HOUR_S
from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row


def busy(folder: Path, jobs: int = 200) -> Path:
    """A site of four CPUs with a queue; every job has a request."""
    return file_of(
        folder,
        *[
            row(
                n + 1, 200 * n, 300 + 500 * (n * 7 % 5), 1 + n % 3, user=n % 4, time_asked=3600,
                wait=1000 + n % 50,
            )
            for n in range(jobs)
        ],
    )  # fmt: skip


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("discipline", ["strict", "easy", "first_fit"])
def test_every_later_job_that_waits_is_asked_for(tmp_path: Path, discipline: str) -> None:
    trace, out, jobs = busy(tmp_path), tmp_path / "starts.csv", tmp_path / "jobs.csv"
    said = outrider(
        "forecast", trace, "--discipline", discipline, "--train", 0.3, "--out", out, "--json",
        "--replicates", 20,
    ).json()  # fmt: skip
    assert said.keys() >= {"version", "command", "date", "traces", "scores", "refused"}
    outrider(
        "replay", trace, "--policy", "fifo", "--discipline", discipline, "--jobs", jobs, "--json"
    ).json()
    wanted = set()
    for job in rows_of(jobs)[60:]:
        submit_s, start_s = float(job["submit_s"]), float(job["start_s"])
        if start_s > submit_s:
            hours = range(int(-(-submit_s // HOUR_S)), int(-(-start_s // HOUR_S)))
            wanted |= {(job["job"], submit_s), *((job["job"], hour * HOUR_S) for hour in hours)}
    found = rows_of(out)
    assert list(found[0]) == ["job", "asked_s", "low_s", "median_s", "high_s"]
    assert {(one["job"], float(one["asked_s"])) for one in found} == wanted
    assert len(found) == len(wanted) == said["questions"] > 100
    for one in found:
        if one["low_s"]:
            asked_s, low_s, median_s, high_s = (float(one[name]) for name in list(one)[1:])
            assert asked_s <= low_s <= median_s <= high_s
    kinds = said["scores"].values()
    assert sum(kind["questions"] for kind in kinds) == said["questions"]
    assert sum(kind["unknown"] for kind in kinds) == sum(not one["low_s"] for one in found)


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    trace = busy(tmp_path)

    def answers(seed: int, name: str) -> bytes:
        out = tmp_path / name
        options = ("--seed", seed, "--out", out, "--replicates", 10)
        assert outrider("forecast", trace, *options).code == 0
        return out.read_bytes()

    assert answers(1, "a.csv") == answers(1, "b.csv")
    assert answers(1, "a.csv") != answers(2, "c.csv")


def test_recorded_starts_can_be_forecast(tmp_path: Path) -> None:
    out = tmp_path / "starts.csv"
    said = outrider("forecast", busy(tmp_path), "--recorded", "--out", out, "--json").json()
    assert said["starts"] == "recorded"
    at_submission = {(one["job"], float(one["asked_s"])) for one in rows_of(out)}
    assert at_submission >= {(str(n + 1), 200.0 * n) for n in range(200)}  # all wait


def test_where_nobody_waits_it_says_so(tmp_path: Path) -> None:
    out = tmp_path / "starts.csv"
    trace = file_of(tmp_path, row(1, 0, 10, time_asked=60), row(2, 50, 10, time_asked=60))
    said = outrider("forecast", trace, "--out", out, "--json").json()
    assert said["refused"]
    assert rows_of(out) == []
    done = outrider("forecast", trace, "--out", out)
    assert (done.code, done.out.strip()) == (0, said["refused"])


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--discipline", "conservative"), "conservative"),
        (("--discipline", "easy_sjbf"), "easy_sjbf"),
        (("--estimates", "learned"), "learned"),
        (("--estimates", "guessed"), "guessed"),
    ],
)
def test_what_cannot_be_run_forward_is_refused(
    tmp_path: Path, options: tuple[str, ...], names: str
) -> None:
    done = outrider("forecast", busy(tmp_path, 3), *options, "--out", tmp_path / "starts.csv")
    assert done.code == 2
    assert names in done.err
    assert not (tmp_path / "starts.csv").exists()


def test_a_campus_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    assert outrider("forecast", tmp_path, "--out", tmp_path / "starts.csv").code == 2
    gone = tmp_path / "gone" / "starts.csv"
    assert outrider("forecast", busy(tmp_path, 3), "--out", gone).code == 2


def test_people_get_a_table(tmp_path: Path) -> None:
    out = tmp_path / "starts.csv"
    done = outrider("forecast", busy(tmp_path), "--replicates", 10, "--out", out)
    assert done.code == 0
    assert "within the 80 % interval" in done.out
    assert str(out) in done.out

"""`outrider generate grid`: files that say how they were made, the same for the same seed."""

from pathlib import Path

import pytest

from outrider.formats.swf.reading import read_swf
from tests.cli.running import Done, outrider


def generate(out: Path, *words: object, seed: int = 7) -> Done:
    return outrider("generate", "grid", "--seed", seed, "--out", out, *words)


def test_the_same_seed_makes_the_same_file(tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("two", 7), ("other", 8)):
        assert generate(tmp_path / name, "--row", 0.2, "--jobs", 50, seed=seed).code == 0
    one, two, other = ((tmp_path / name).read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other


def test_json_tells_what_was_made(tmp_path: Path) -> None:
    path = tmp_path / "grid.swf"
    told = generate(path, "--row", 0.5, "--jobs", 200, "--machines", 9, "--json").json()
    workload = read_swf(path)
    assert (told["jobs"], told["machines"], told["cpus"], told["seed"]) == (200, 9, 9, 7)
    assert told["interactive"] == workload.job_class.count("interactive")
    assert told["work_s"] == pytest.approx(float(workload.run_s.sum()))
    assert told["span_s"] == workload.submit_s[-1]


def test_the_header_says_how_it_was_made_and_which_shares_are_meant(tmp_path: Path) -> None:
    generate(tmp_path / "grid.swf", "--row", 0.2, "--jobs", 5, "--load", 0.5)
    header = [line for line in (tmp_path / "grid.swf").read_text().splitlines() if line[0] == ";"]
    text = "\n".join(header)
    assert "generate grid --like perez --seed 7 --row 0.2 --jobs 5 --load 0.5" in text
    assert "--shares 1=0.7,2=0.2,3=0.05,4=0.05" in text
    assert "; MaxProcs: 50" in header


def test_the_shares_of_the_header_can_be_given_to_replay(tmp_path: Path) -> None:
    generate(tmp_path / "grid.swf", "--row", 0.2, "--jobs", 50)
    line = next(line for line in (tmp_path / "grid.swf").read_text().splitlines()
                if "--shares" in line)  # fmt: skip
    shares = line.split("--shares ")[1].split()[0]
    done = outrider("replay", tmp_path / "grid.swf", "--policy", "fifo", "--shares", shares)
    assert done.code == 0, done


def test_vengerovs_machine_can_be_replayed_as_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "machine.swf.gz"
    words = ("--like", "vengerov", "--rate", 0.2, "--length", 300, "--steps", "continuous")
    told = generate(path, *words, "--json").json()
    assert (told["machines"], told["cpus"], told["interactive"]) == (1, 24, 0)
    how = ("--utility", "batch=linear")
    (run,) = outrider("replay", path, "--policy", "fifo", *how, "--json").json()["runs"]
    assert run["jobs"]["completed"] == told["jobs"]
    assert set(run["wait_s"]["by_class"]) == {"batch"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "--like perez needs --row"),
        (("--row", 0.2, "--rate", 1), "--rate: is not an option of --like perez; expected --row"),
        (("--like", "vengerov"), "--like vengerov needs --rate"),
        (("--like", "vengerov", "--rate", 0.1, "--jobs", 9), "--jobs: is not an option of --like"),
        (("--like", "vengerov", "--rate", 1e-9), "no job arrives in that time"),
        (("--row", 2), "row = 2.0; expected between 0 and 1"),
        (("--row", 0.2, "--load", 0), "load = 0.0"),
    ],
)
def test_an_impossible_wish_is_refused(tmp_path: Path, words: tuple[object, ...], why: str) -> None:
    done = generate(tmp_path / "no.swf", *words)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
    assert not (tmp_path / "no.swf").exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = generate(tmp_path / "nowhere" / "grid.swf", "--row", 0.2)
    assert done.code == 2
    assert "grid.swf: cannot be written: No such file" in done.err

"""`outrider generate campus`: folders that can be replayed, the same for the same seed."""

from pathlib import Path

from tests.cli.running import Done, outrider

SMALL = ("--weeks", 0.5, "--machines", 12, "--start", "2010-03-01")


def generate(out: Path, *words: object, seed: int = 7) -> Done:
    return outrider("generate", "campus", "--seed", seed, *SMALL, "--out", out, *words)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_seed_makes_the_same_campus(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert generate(tmp_path / name).code == 0
    assert generate(tmp_path / "other", seed=8).code == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert contents(tmp_path / "one") != contents(tmp_path / "other")


def test_json_tells_what_was_made(tmp_path: Path) -> None:
    told = generate(tmp_path / "made", "--json").json()
    rows = {name: len((tmp_path / "made" / f"{name}.csv").read_text().splitlines()) - 1
            for name in ("machines", "owners", "jobs")}  # fmt: skip
    assert (told["machines"], told["owner_sessions"], told["jobs"]) == tuple(rows.values())
    assert told["machines"] == 12
    assert told["seed"] == 7


def test_fewer_machines_stand_in_fewer_rooms_unless_told(tmp_path: Path) -> None:
    assert generate(tmp_path / "a", "--json").json()["clusters"] == 1
    assert generate(tmp_path / "b", "--clusters", 4, "--json").json()["clusters"] == 4


def test_the_tables_can_be_gzipped_and_hold_the_same(tmp_path: Path) -> None:
    generate(tmp_path / "plain")
    generate(tmp_path / "packed", "--gz")
    names = {path.name for path in (tmp_path / "packed").iterdir()}
    assert names == {"site.toml", "machines.csv.gz", "owners.csv.gz", "jobs.csv.gz"}
    hashes = [
        outrider("replay", tmp_path / name, "--policy", "fifo", "--json").json()["runs"][0]
        for name in ("plain", "packed")
    ]
    assert hashes[0]["ledger_sha256"] == hashes[1]["ledger_sha256"]


def test_without_bad_jobs_every_job_ends(tmp_path: Path) -> None:
    generate(tmp_path / "good", "--bad-jobs", 0, "--jobs", 60)
    header, *rows = (tmp_path / "good" / "jobs.csv").read_text().splitlines()
    run_s = header.split(",").index("run_s")
    assert len(rows) == 60
    assert all(row.split(",")[run_s] for row in rows)


def test_an_impossible_wish_is_refused(tmp_path: Path) -> None:
    done = generate(tmp_path / "no", "--clusters", 50)
    assert done.code == 2
    assert "clusters = 50 is more than machines = 12" in done.err
    assert not (tmp_path / "no").exists()

"""`outrider generate journal`: a file that the commands for journals read, or a refusal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from outrider.journal.site_facts import Incumbent, facts_on_record
from tests.cli.running import outrider
from tests.logs_as_before import logs_as_before

__all__ = ["logs_as_before"]

pytestmark = pytest.mark.usefixtures("logs_as_before")
"""The command sets up logs for its process, which is that of the tests."""

WORDS = ("generate", "journal", "--campus")


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campus folder of half a week."""
    folder = tmp_path_factory.mktemp("site") / "campus"
    small = ("--seed", 3, "--weeks", 0.5, "--machines", 12, "--start", "2010-03-01", "--jobs", 80)
    assert outrider("generate", "campus", *small, "--out", folder).code == 0
    return folder


def test_what_it_writes_can_be_verified_shown_and_exported(campus: Path, tmp_path: Path) -> None:
    out = tmp_path / "journal.sqlite"
    told = outrider(*WORDS, campus, "--incumbent", "fifo", "--out", out, "--json").json()
    assert told["incumbent"] == "fifo"
    assert told["jobs"]["submitted"] == 80
    assert [path.name for path in tmp_path.iterdir()] == ["journal.sqlite"]
    assert out.stat().st_mode & 0o777 == 0o600
    on_record = facts_on_record(out)
    assert on_record is not None
    assert on_record.incumbent == Incumbent("fifo", "campus")
    assert outrider("ledger", "verify", out).code == 0
    assert outrider("ledger", "show", out).code == 0
    facts = outrider("export", "campus", "--ledger", out, "--out", tmp_path / "seen", "--json")
    assert (facts.json()["machines"], facts.json()["jobs"]) == (12, 80)


def test_a_policy_that_knows_the_truth_may_stand_for_a_bound(campus: Path, tmp_path: Path) -> None:
    out = tmp_path / "journal.sqlite"
    done = outrider(*WORDS, campus, "--incumbent", "clairvoyant", "--out", out)
    assert done.code == 0
    assert "machines: 12, jobs: 80" in done.out


def there(folder: Path) -> list[object]:
    (folder / "out.sqlite").write_text("precious")
    return []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (there, "out.sqlite: exists already; expected a new file"),
        (lambda _: ["--incumbent", "randm_match"], 'did you mean "random_match"?'),
        (lambda _: ["--until", "nan"], "not a number of seconds"),
        (lambda _: ["--until", "-1"], "-1"),
        (lambda folder: ["--campus", folder], "no site.toml"),
        (lambda folder: ["--campus", folder / "none"], "no such folder"),
        (lambda folder: ["--out", folder / "none" / "j"], "an existing folder"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(
    campus: Path, tmp_path: Path, words: Callable[[Path], list[object]], message: str
) -> None:
    given = words(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = outrider(*WORDS, campus, "--out", tmp_path / "out.sqlite", *given)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

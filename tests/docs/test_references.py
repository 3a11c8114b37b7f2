"""Docstrings, comments and pages name only modules, names and files that are there."""

from pathlib import Path

import pytest

from tools.references import REPOSITORY, Tree

MODULE = '''"""What jobs are."""

from outrider.model.runs import Run

LIMIT = 3


class Job:
    """One job."""

    user: str

    def __init__(self) -> None:
        self.wait_s = 0.0
'''


def test_every_module_name_and_file_named_in_the_repository_is_there() -> None:
    broken = list(Tree(REPOSITORY).broken())
    told = "\n".join(map(str, broken))
    assert not broken, f"`python -m tools.references` lists these alone:\n{told}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small repository in the form of this one."""
    model = tmp_path / "daemon/outrider/model"
    model.mkdir(parents=True)
    (model / "__init__.py").write_text("")
    (model.parent / "__init__.py").write_text("")
    (model / "jobs.py").write_text(MODULE)
    (model / "runs.py").write_text("class Run:\n    def end(self) -> None: ...\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/http.md").write_text("# HTTP\n")
    return tmp_path


def told(tree: Path, text: str, file: str = "docs/page.md") -> list[str]:
    """Return the findings in a file with this text, as "name: why"."""
    (tree / file).write_text(text)
    return [f"{name}: {why}" for place, name, why in Tree(tree).broken() if place.startswith(file)]


@pytest.mark.parametrize(
    "text",
    [
        "`outrider.model`, `outrider.model.jobs`, `outrider.model.jobs.LIMIT`",
        "`outrider.model.jobs.Job.user` and `outrider.model.jobs.Job.wait_s`",
        "`outrider.model.jobs.Run.end` is what `outrider.model.runs` has",
        "write `outrider.toml`; entry points `outrider.adapters`; http://outrider.example.org",
        "see `docs/http.md`, `docs/*.md`, `model/jobs.py`, `jobs.py`, `docs/NAME.md`",
        "daemon/outrider/model/",
    ],
)
def test_what_is_there_is_not_told(tree: Path, text: str) -> None:
    assert told(tree, text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("`outrider.engine.names`", "outrider.engine.names: no module engine in outrider"),
        (
            "outrider.model.Run",
            "outrider.model.Run: no module Run in outrider.model; there is outrider.model.runs.Run",
        ),
        (
            "outrider.model.jobs.runs",
            (
                "outrider.model.jobs.runs: no name runs in outrider.model.jobs; "
                "there is outrider.model.runs"
            ),
        ),
        (
            "outrider.model.jobs.Job.wait",
            "outrider.model.jobs.Job.wait: outrider.model.jobs.Job has no wait",
        ),
        (
            "outrider.model.jobs.Run.begin",
            "outrider.model.jobs.Run.begin: outrider.model.runs.Run has no begin",
        ),
        ("docs/ftp.md", "docs/ftp.md: there is no such file"),
        (
            "engine/jobs.py",
            "engine/jobs.py: no file's path ends so; there is daemon/outrider/model/jobs.py",
        ),
    ],
)
def test_what_is_not_there_is_told_with_what_there_is_instead(
    tree: Path, text: str, why: str
) -> None:
    assert told(tree, f"See {text}.") == [why]


def test_comments_and_docstrings_of_code_are_prose_and_its_code_is_not(tree: Path) -> None:
    code = '''\
"""As `outrider.gone` has it."""
import outrider.missing  # see outrider.lost
FOLDER = "outrider.nowhere"
'''
    found = told(tree, code, "daemon/outrider/model/more.py")
    assert [line.partition(":")[0] for line in found] == ["outrider.gone", "outrider.lost"]
    assert len(told(tree, "x = 1  # as outrider.gone\ny = 2\n", "set_up.sh")) == 1


def test_the_place_is_the_file_and_the_line(tree: Path) -> None:
    (tree / "docs/page.md").write_text("# Page\n\nSee outrider.gone.\n")
    assert [broken.place for broken in Tree(tree).broken()] == ["docs/page.md:3"]

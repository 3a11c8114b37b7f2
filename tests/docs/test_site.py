"""The pages as a site: every page is in it, and a link that leads nowhere is an error."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("myst_parser", reason="needs outrider[docs]")


def build(source: Path, conf: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    """What `make docs` does with the pages of a folder."""
    words: list[str | Path] = [
        "-c", conf, "-q", "-W", "--keep-going", "-d", out / "doctrees", source, out / "html"
    ]  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_it_is_built_without_a_warning_and_has_every_page(repository: Path, tmp_path: Path) -> None:
    done = build(repository, repository / "docs", tmp_path)
    assert done.returncode == 0, done.stderr
    pages = [*repository.glob("*.md"), *(repository / "docs").rglob("*.md")]
    assert len(pages) > 90
    for page in pages:
        made = tmp_path / "html" / page.relative_to(repository).with_suffix(".html")
        assert made.is_file(), page


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("[away](nowhere.md)\n", "nowhere.md"),
        ("[a heading](#that-is-not-there)\n", "that-is-not-there"),
        ("```{toctree}\nmissing\n```\n", "missing"),
    ],
)
def test_what_leads_nowhere_is_an_error(
    page: str, said: str, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "source" / "docs").mkdir(parents=True)
    (tmp_path / "source" / "docs" / "index.md").write_text(f"# All\n\n{page}")
    done = build(tmp_path / "source", repository / "docs", tmp_path)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_page_that_no_list_names_is_an_error(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "source" / "docs"
    folder.mkdir(parents=True)
    (folder / "index.md").write_text("# All\n")
    (folder / "forgotten.md").write_text("# Forgotten\n")
    done = build(tmp_path / "source", repository / "docs", tmp_path)
    assert done.returncode != 0
    assert "forgotten.md" in done.stderr

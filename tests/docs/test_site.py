"""Pages as a site: it contains every page, and a broken link is an error."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("myst_parser", reason="needs outrider[docs]")


def build(
    source: Path, conf: Path, out: Path, theme: str = "basic"
) -> "subprocess.CompletedProcess[str]":
    """Build the pages of a folder as `make docs` does, but without the slow theme."""
    words: list[str | Path] = [
        "-D", f"html_theme={theme}",
        "-c", conf, "-q", "-W", "--keep-going", "-d", out / "doctrees", source, out / "html"
    ]  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["basic", pytest.param("furo", marks=pytest.mark.long)])
def test_it_is_built_without_a_warning_and_has_every_page(
    theme: str, repository: Path, tmp_path: Path
) -> None:
    done = build(repository, repository / "docs", tmp_path, theme)
    assert done.returncode == 0, done.stderr
    pages = [*repository.glob("*.md"), *(repository / "docs").rglob("*.md")]
    assert len(pages) > 90
    for page in pages:
        made = tmp_path / "html" / page.relative_to(repository).with_suffix(".html")
        assert made.is_file(), page


PAGES = {
    "away": "[away](nowhere.md)\n",
    "within": "[a heading](#that-is-not-there)\n",
    "listed": "```{toctree}\nmissing\n```\n",
    "forgotten": "no list names this page\n",
}
"""Pages of a site that has each fault once, by their names."""


@pytest.fixture(scope="module")
def faulty(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> "subprocess.CompletedProcess[str]":
    """Result of building that site."""
    folder = tmp_path_factory.mktemp("site")
    docs = folder / "source" / "docs"
    docs.mkdir(parents=True)
    for name, text in PAGES.items():
        (docs / f"{name}.md").write_text(f"# {name}\n\n{text}")
    listed = "\n".join(name for name in PAGES if name != "forgotten")
    (docs / "index.md").write_text(f"# All\n\n```{{toctree}}\n{listed}\n```\n")
    return build(folder / "source", repository / "docs", folder)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("away", "nowhere.md"),
        ("within", "that-is-not-there"),
        ("listed", "missing"),
        ("forgotten", "toctree"),
    ],
)
def test_a_link_that_leads_nowhere_or_a_page_that_no_list_names_is_an_error(
    page: str, said: str, faulty: "subprocess.CompletedProcess[str]"
) -> None:
    assert faulty.returncode != 0
    errors = [line for line in faulty.stderr.splitlines() if f"{page}.md" in line]
    assert any(said in line for line in errors), faulty.stderr

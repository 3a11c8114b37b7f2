"""The report page: every figure drawn, with units on its axes and a legend."""

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from outrider_lab.papers.mcgough.grid import COMPARED, FULL, LEVELS, QUICK, paper_bandit
from outrider_lab.papers.mcgough.page import PAGE, drawings
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict, in_words
from outrider_lab.reporting.page import Drawing
from tests.lab import made_up
from tests.lab.drawn import texts


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """A result as the paper has it."""
    return made_up.summed_up(FULL, range(1, 5), made_up.years(made_up.as_the_paper), [])


@pytest.fixture(scope="module")
def figures(result: dict[str, Any]) -> list[Drawing]:
    """The drawings of that result."""
    return drawings(result)


def test_the_papers_figures_7_to_19_are_all_there(figures: list[Drawing]) -> None:
    numbers = [int(n) for f in figures for n in re.findall(r"^Figure (\d+):", f.title)]
    assert numbers == list(range(7, 20))
    assert [figure.title for figure in figures[-3:]] == [
        "The decision epoch: energy saved", "The decision epoch: overhead", "Beside other policies",
    ]  # fmt: skip


def test_every_axis_has_a_name_with_its_unit_and_every_figure_a_legend(
    figures: list[Drawing],
) -> None:
    for figure in figures:
        for axis in ("matplotlib.axis_1", "matplotlib.axis_2"):
            name = texts(figure, axis)[-1]
            is_named_by_its_groups = figure.title.startswith(("Figure 12", "Figure 13"))
            if not (is_named_by_its_groups and axis.endswith("1")):
                assert re.search(r"\w \[[^\]]+\]$", name), f"{figure.title}: {axis} is {name!r}"
        assert len(texts(figure, "legend")) >= 2, figure.title


def test_legends_name_what_is_drawn(figures: list[Drawing]) -> None:
    by_title = {figure.title.partition(":")[0]: texts(figure, "legend") for figure in figures}
    assert set(by_title["Figure 7"]) == {*(f"sigma {s:g}" for s in FULL.sigmas), "random"}
    assert set(by_title["Figure 11"]) == {*(f"epsilon {e:g}" for e in FULL.epsilons), "random"}
    assert set(by_title["Figure 12"]) == {*LEVELS, "random"}
    others = set(by_title["Beside other policies"])
    assert others >= {variant.policy for variant in COMPARED}


class _Page(HTMLParser):
    """Collects what is opened and closed, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.linked: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.linked += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def text(result: dict[str, Any], figures: list[Drawing]) -> str:
    """The page of that result; its drawings are not drawn again."""
    return PAGE._replace(drawings=lambda _: figures).html(result)


def test_the_page_is_whole_and_needs_nothing_beside_it(result: dict[str, Any], text: str) -> None:
    page = _Page(text)
    assert page.tags.count("figure") == page.tags.count("figcaption") == 16
    assert page.tags.count("svg") >= 16
    assert [link for link in page.linked if re.match(r"https?:|//", link)] == []
    words = " ".join(page.words)
    for claim in result["claims"]:
        assert claim["claim"] in words
        assert claim["why"] in words
    for row in result["rows"]:
        assert row["variant"] in words
    assert "absolute MWh cannot" in words
    assert "quick" not in words.partition("Claims")[0]


def test_the_page_says_of_the_verdicts_what_the_json_says(
    result: dict[str, Any], text: str
) -> None:
    words = " ".join(_Page(text).words)
    assert in_words(result["verdicts"]) in words
    assert words.count(" not reproduced") == 0
    for verdict in (*Verdict, NOT_COMPARABLE):
        shown = len(re.findall(rf'<span class="verdict \w+">{verdict}</span>', text))
        assert shown == result["verdicts"][verdict], verdict
        assert shown == sum(one["verdict"] == verdict for one in result["claims"])


def test_what_a_drawing_refers_to_is_the_same_in_all_drawings(figures: list[Drawing]) -> None:
    """Check that an id means the same in all drawings, because they share a page."""
    meanings: dict[str, set[str]] = {}
    for figure in figures:
        for element in ET.fromstring(figure.svg).iter():
            if "id" in element.attrib:
                element.tail = None
                meanings.setdefault(element.attrib["id"], set()).add(
                    ET.tostring(element, "unicode")
                )
    referred = {name for f in figures for name in re.findall(r'(?:url\(|href=")#([^)"]+)', f.svg)}
    assert referred
    assert {name for name in referred if len(meanings[name]) != 1} == set()


def test_a_result_read_back_from_its_json_gives_the_same_page(
    result: dict[str, Any], text: str
) -> None:
    assert PAGE.html(msgspec.json.decode(msgspec.json.encode(result))) == text


def test_a_quick_page_with_failed_runs_says_so_and_draws_the_rest() -> None:
    years = made_up.years(made_up.as_the_paper, range(1, 3), QUICK)
    for year in years.values():
        del year[paper_bandit("system", 0.01)], year[COMPARED[0]]
        for epsilon in QUICK.epsilons:
            del year[paper_bandit("computer", epsilon)]
    failed = [{"run": "bandit <level>, seed 1", "error": "its process ended"}]
    page = _Page(PAGE.html(made_up.summed_up(QUICK, range(1, 3), years, failed)))
    words = " ".join(page.words)
    assert "quick run" in words
    assert "bandit <level>, seed 1" in words
    assert page.tags.count("figure") == 16
    assert "system" in words
    assert "computer, epsilon" not in words

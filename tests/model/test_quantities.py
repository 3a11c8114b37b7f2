"""A quantity reads the same in the terminal and on the page."""

import re
from pathlib import Path

import pytest

from outrider.model.quantities import (
    MISSING,
    RATIO_LABELS,
    UNITS_OF_TIME,
    duration,
    energy,
    percent,
)
from outrider.twin.measures import MEASURES

PAGE = Path("daemon/outrider/service/web/page/words.js")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, MISSING), (0.0, "0 s"), (119.4, "119 s"), (120.0, "2.0 min"), (599.0, "10.0 min"),
        (600.0, "10 min"), (7_199.0, "120 min"), (7_200.0, "2.0 h"), (172_800.0, "2.0 d"),
        (-60.0, "-60 s"),
    ],
)  # fmt: skip
def test_a_duration_has_the_unit_that_suits_it(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_the_page_changes_units_where_the_terminal_does(repository: Path) -> None:
    script = (repository / PAGE).read_text(encoding="utf-8")
    body = script.partition("export function duration")[2].partition("\n}")[0]
    changes = re.findall(r"if \(seconds < (\d+)\) return `\$\{.*\} (s|min|h)`", body)
    assert [(unit, float(most)) for most, unit in changes] == [
        (unit, most) for unit, _, most in UNITS_OF_TIME
    ]
    assert re.search(r"seconds / 86400, 1\)\} d`;", body)


def test_what_the_twin_compares_has_one_label_wherever_it_is_shown(repository: Path) -> None:
    assert [measure.name for measure in MEASURES] == list(RATIO_LABELS)
    script = (repository / PAGE).with_name("twin.js").read_text(encoding="utf-8")
    shown = dict(re.findall(r'^  \["(\w+_ratio)", "(.+)"\],$', script, re.MULTILINE))
    assert len(shown) > 3
    assert {name: label.lower() for name, label in shown.items()} == {
        name: RATIO_LABELS[name].lower() for name in shown
    }


def test_what_is_not_known_says_so() -> None:
    assert (percent(None), percent(0.125)) == (MISSING, "12.5 %")
    assert (energy(None), energy(999.0), energy(1_500.0)) == ("unknown", "999.0 Wh", "1.5 kWh")

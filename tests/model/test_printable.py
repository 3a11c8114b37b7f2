"""Text from outside cannot steer a terminal, forge a line or run in a spreadsheet."""

import pytest

from outrider.model.printable import csv_cell, printable, printable_line, printable_name

HOSTILE = "ada\x1b]0;root\x07\u202eexe\u2066\x85\x00"


@pytest.mark.parametrize("spelled", [printable, printable_line, printable_name])
def test_nothing_that_steers_a_terminal_is_left(spelled: object) -> None:
    assert callable(spelled)
    text = spelled(HOSTILE)
    assert text.isprintable()
    assert text.startswith("ada")
    assert spelled("Zoë 東京") == "Zoë 東京"


def test_line_breaks_stay_in_a_text_and_leave_a_line_and_a_name() -> None:
    assert printable("a\n\tb") == "a\n\tb"
    assert printable_line("a\n\tb") == "a  b"
    assert printable_name("a\nb") == r"a\nb"


def test_a_long_line_is_cut_and_says_so() -> None:
    assert printable_line("x" * 10, 10) == "x" * 10
    assert printable_line("x" * 11, 10) == "x" * 10 + "..."


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_does_not_run_a_cell(start: str) -> None:
    assert csv_cell(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"


def test_other_cells_are_as_they_are() -> None:
    assert [csv_cell(v) for v in ("-", "", "a=b", -1.5, 7, None)] == ["-", "", "a=b", -1.5, 7, None]

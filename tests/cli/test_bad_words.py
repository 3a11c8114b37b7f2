"""Words of the command line that cannot be used: each is named, with what would be right."""

import re
from pathlib import Path

import pytest

from tests.cli.running import outrider

FOREIGN = re.compile(r"Traceback|x>=|<=x|%Y|is not a valid|in the range|Invalid value|click")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("replay", "t"), "--policy is missing; expected --policy NAME, a word"),
        (("replay", "--policy", "fifo"), "TRACE... is missing; expected "),
        (
            ("replay", "t", "--policy", "fifo", "--seed", "x"),
            '--seed "x": expected a whole n',
        ),
        (
            ("replay", "t", "--policy", "fifo", "--machines", "0"),
            '--machines "0": expected a whole number, 1 or more',
        ),
        (("replay", "t", "--policy", "fifo", "--until", "nan"), "--until: nan is not a number"),
        (
            ("replay", "t", "--policy", "fifo", "--discipline", "fast"),
            '--discipline "fast": expected one of first_fit, strict, easy, easy_sjbf, ',
        ),
        (("replay", "t", "--polcy", "fifo"), "No such option '--polcy'. Did you mean '--policy'?"),
        (
            ("generate", "campus", "--seed", "1", "--start", "soon", "--out", "c"),
            '--start "soon": expected a date, as in 2026-03-31',
        ),
        (("demo", "--port", "x"), '--port "x": expected a whole number, 0 or more, at most'),
        (("doctor",), "--config is missing; expected --config FILE, a file"),
        (("rpelay",), 'no command "rpelay"; did you mean "replay"?'),
    ],
)
def test_a_word_that_cannot_be_used_is_named_with_what_would_be_right(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    trace = tmp_path / "t"
    trace.write_text("; MaxProcs: 4\n")
    done = outrider(*(str(trace) if word == "t" else word for word in words))
    assert done.code == 2
    last = done.err.splitlines()[-1]
    assert last.startswith("Error: ")
    assert told in last
    assert not FOREIGN.search(done.err), done.err
    assert "--help' for help." in done.err

"""Names of jobs, and their short forms, which people may type where they are unique here.

Names are those that batch systems guarantee to be unique: ``SCHEDD#CLUSTER.PROC`` (HTCondor),
``CLUSTER:ID``, followed by the number of a task (Slurm), ``ID.SERVER`` (PBS). A name that was
used again is followed by ``#SECOND``, the second of the submission.
"""

import re
from typing import Final

_SHAPES: Final = (
    re.compile(r"(?P<system>.+#)(?P<id>\d+\.\d+(?:\.\d+)?)(?P<again>#\d+)?"),  # HTCondor
    re.compile(r"(?P<system>.+:)(?P<id>\d+(?:[_+]\d+)?)(?P<again>#\d+)?"),  # Slurm
    re.compile(r"(?P<system>)(?P<id>\d+(?:\[\d*\])?)\..+?(?P<again>#\d+)?"),  # PBS
)
AFTER_SHORT_FORM: Final = "._+[#"
"""Separators that may follow a short form in a name: of a process, task, index or second."""


def system_of(name: str) -> str:
    """The part of a name before the id, with its separator; empty if there is none.

    >>> system_of("ap1.example.org#12.0"), system_of("c1:123_4"), system_of("123.server")
    ('ap1.example.org#', 'c1:', '')
    >>> system_of("ap1.example.org#12.0#1795231020")
    'ap1.example.org#'
    """
    match = _parts(name)
    return match["system"] if match else ""


def stands_for(short: str, name: str) -> bool:
    """Whether `short` can mean the job of this name.

    >>> [stands_for(short, "ap1#12.0") for short in ("ap1#12.0", "12.0", "12", "2.0", "1")]
    [True, True, True, False, False]
    >>> stands_for("123", "c1:123_4"), stands_for("1234[7]", "1234[7].server")
    (True, True)
    """
    if not short or short not in name:
        return False
    match = _parts(name)
    if short == name or match is None:
        return short == name
    own, again = match["id"], match["again"] or ""
    if short in (own, own + again, match["system"] + own):
        return True
    return own.startswith(short) and own[len(short)] in AFTER_SHORT_FORM


def _parts(name: str) -> re.Match[str] | None:
    return next((match for shape in _SHAPES if (match := shape.fullmatch(name))), None)

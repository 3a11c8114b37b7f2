"""What can go wrong, one root. Programming errors are not among these: they crash."""

import difflib
from collections.abc import Iterable


class OutriderError(Exception):
    """The root of everything Outrider raises on purpose. `exit_code` is the command line's."""

    exit_code = 2


class ConfigurationError(OutriderError):
    """A setting is wrong; the message names file, path, value and what would be right."""


class TraceError(OutriderError):
    """A trace or log cannot be read; the message names file, line, column and value."""


class PluginError(OutriderError):
    """A plugin could not be found or loaded; the message names it."""


class MissingPackageError(PluginError):
    """A plugin that is in order needs a package that is not installed here.

    A plugin raises it on import; the message names the package and how to install it. Nothing has
    to be mended where nobody configures that plugin.
    """


class PolicyError(OutriderError):
    """A policy raised an error while it decided or learned; the message names it."""

    exit_code = 70


class LedgerError(OutriderError):
    """The journal or a snapshot cannot be read or written."""


class PeerError(OutriderError):
    """Something Outrider talks to could not be reached. `transient`: a retry makes sense."""

    exit_code = 3

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


def nearest(word: str, known: Iterable[str]) -> str:
    """A closing half-sentence that names the nearest known word, or all of them.

    A word that is much longer or shorter is another word, unless it is how the known one begins.

    >>> nearest("epsilom", ["epsilon", "sigma"])
    'did you mean "epsilon"?'
    >>> nearest("condor", ["logtail", "mock_condor"])
    'known: logtail, mock_condor'
    >>> nearest("zero", ["power", "zero_at"])
    'did you mean "zero_at"?'
    """
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1)
    if close:
        shorter, longer = sorted((word, close[0]), key=len)
        if longer.startswith(shorter) or len(shorter) * 3 >= len(longer) * 2:
            return f'did you mean "{close[0]}"?'
    return f"known: {', '.join(choices) or 'none'}"

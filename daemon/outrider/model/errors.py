"""The errors that Outrider raises on purpose. Programming errors are not among them."""

import difflib
from collections.abc import Iterable


class OutriderError(Exception):
    """Base of all errors that Outrider raises on purpose; `exit_code` is that of the commands."""

    exit_code = 2


class ConfigurationError(OutriderError):
    """Wrong setting; the message names file, path, value and what is expected."""


class TraceError(OutriderError):
    """A trace or log cannot be read; the message names file, line, column and value."""


class PluginError(OutriderError):
    """A plugin could not be found or loaded; the message names it."""


class MissingPackageError(PluginError):
    """A valid plugin needs a package that is not installed here.

    A plugin raises it on import; the message names the package and how to install it. It matters
    only where that plugin is configured.
    """


class PolicyError(OutriderError):
    """A policy raised an error while it decided or learned; the message names it."""

    exit_code = 70


class LedgerError(OutriderError):
    """The journal or a snapshot cannot be read or written."""


class PeerError(OutriderError):
    """A system that Outrider connects to cannot be reached. `transient`: a retry may succeed."""

    exit_code = 3

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause for the end of an error message: the nearest known word, or all of them.

    A much longer or shorter word is not taken for a misspelling, unless a known one begins with it.

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

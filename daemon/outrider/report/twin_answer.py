"""The twin's answer for a report: read from a file, or as it was just given."""

from pathlib import Path
from typing import Any

import msgspec

from outrider.model.errors import ConfigurationError
from outrider.twin.answer_file import TwinAnswer


def read_answer(path: Path) -> TwinAnswer:
    """Read what ``outrider twin JOURNAL --json`` printed.

    Raises:
        ConfigurationError: it cannot be read, or is something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=TwinAnswer)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: is no answer of the twin: {error}; right would be what "
            "`outrider twin JOURNAL --policy NAME --json` prints"
        ) from error


def answer_of(told: dict[str, Any]) -> TwinAnswer:
    """The same of an answer as `outrider.twin.answer.Answer.to_json` gives it.

    Raises:
        ConfigurationError: it is something else.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(told), type=TwinAnswer)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"the twin's answer cannot be read: {error}") from error

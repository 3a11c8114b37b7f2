"""The batch system's own words for the states of jobs, as its adapter declares them."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import structlog
from msgspec import Meta

from outrider.api.adapter import Adapter
from outrider.model.jobs import JOB_STATE_NAMES

_Words: TypeAlias = dict[
    Literal["queued", "running", "suspended", "held"],
    Annotated[str, Meta(min_length=1, max_length=40)],
]
OURS: Final[Mapping[str, str]] = {name: name for name in JOB_STATE_NAMES}

log = structlog.get_logger()


class StateWords:
    """What the adapters in force call the states of jobs.

    Args:
        adapters: those in force now, by label.
    """

    def __init__(self, adapters: Callable[[], Mapping[str, Adapter]]) -> None:
        self._adapters = adapters
        self._told_wrongly: set[str] = set()

    def now(self) -> dict[str, str]:
        """A word for each state: ours where no adapter has one, or two have other ones."""
        said = [words for one in self._adapters().items() if (words := self._said(*one))]
        if not said or any(words != said[0] for words in said):
            return dict(OURS)
        return {**OURS, **said[0]}

    def _said(self, label: str, adapter: Adapter) -> dict[Any, str]:
        """An adapter's; what it declares wrongly is not known, and is logged once."""
        try:
            return msgspec.convert(dict(adapter.state_words), _Words)
        except Exception as error:  # noqa: BLE001 - a plugin's declaration must end no answer
            if label not in self._told_wrongly:
                self._told_wrongly.add(label)
                why = f"{type(error).__name__}: {error}"
                log.warning("ignore_state_words", adapter=label, reason=why)
            return {}

"""What the adapters of an HTCondor pool have in common."""

from typing import ClassVar

from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.polling import PollingAdapter
from outrider_adapters.readers.htcondor.state_words import STATE_WORDS


class CondorAdapter(PollingAdapter):
    """Base of adapters that look at an HTCondor pool again and again."""

    settings_type: ClassVar[type[WatchSettings]] = WatchSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "owner_came", "owner_went", "usable", "drained", "asleep", "woken",
        "power", "submitted", "started", "suspended", "resumed", "evicted", "completed", "removed",
        "held", "released", "changed", "eligible", "disconnected", "reconnected",
    )  # fmt: skip

    discipline = "first_fit"  # the negotiator passes over what it cannot match
    state_words = STATE_WORDS
    incumbent = "user_priority"  # without a rank, machines are alike to it

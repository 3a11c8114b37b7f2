"""A folder with an event log, a configuration and the real daemon."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from outrider.journal import Journal
from outrider.model.events import KIND_NAMES, TICK
from tests.service.running.event_log import EventLog
from tests.service.running.process import DaemonProcess

HEAD = """\
state_dir = "{state}"
listen = "127.0.0.1:0"
"""
LOG_TABLE = """
[adapters.log]
type = "logtail"
paths = ["{log}"]
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1
"""
SAMPLE = re.compile(r"^(outrider_[a-z_]+(?:\{[^}]*\})?) (\S+)$", re.MULTILINE)


class SmallSite:
    """An event log and a daemon that tails it.

    Args:
        folder: of everything.
        state: the state directory, if it is not to be one in `folder`.
        head: settings before the first table.
        tables: the tables; ``{log}`` in them is the path of the event log.
        environ: additions to the daemon's environment.
    """

    def __init__(
        self,
        folder: Path,
        *,
        state: Path | None = None,
        head: str = "",
        tables: str = LOG_TABLE,
        environ: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.state = state or folder / "state"
        self.log = EventLog(folder / "EventLog")
        self.config = folder / "outrider.toml"
        self.configure(head, tables)
        self.daemon = DaemonProcess(self.config, environ)

    def configure(self, head: str = "", tables: str = LOG_TABLE) -> None:
        """Write the configuration file."""
        text = HEAD.format(state=self.state) + head + tables.replace("{log}", str(self.log.path))
        self.config.write_text(text)

    def journal(self) -> Journal:
        """The journal, to read."""
        return Journal(self.state / "journal.sqlite", read_only=True)

    def recorded(self) -> Counter[str]:
        """Events in the journal, by kind."""
        with self.journal() as journal:
            kinds = [event[1] for _, _, event in journal.inputs_after(0)]
        return Counter(KIND_NAMES[kind] for kind in kinds if kind != TICK)

    def wait_until_applied(self, within_s: float = 20.0) -> dict[str, Any]:
        """Wait until every event that was written has been taken in; returns the status."""
        written = dict(self.log.counts)
        return self.daemon.wait_until(
            f"all taken in: {written}", lambda s: taken_in(s) == written, within_s
        )

    def kill(self) -> None:
        """Kill the daemon once all accepted events are in the journal.

        An earlier kill loses no event either, but then they are read again and the daemon needs a
        moment to catch up.
        """
        self.daemon.wait_until(
            "all recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"], within_s=10
        )
        self.daemon.kill()

    def metrics(self) -> dict[str, float]:
        """Every sample of ``/metrics``, by its name with labels."""
        text = self.daemon.text("/metrics")
        return {name: float(value) for name, value in SAMPLE.findall(text)}

    def log_text(self) -> str:
        """The daemon's own log so far."""
        return self.daemon.log.read_text(errors="replace")


def taken_in(status: dict[str, Any]) -> dict[str, int]:
    """Events that all adapters of a status have brought, by kind."""
    total: Counter[str] = Counter()
    for adapter in status["adapters"]:
        total.update({kind: n for kind, n in adapter["events"].items() if n})
    return dict(total)

"""A simulated campus, or an event log, whose daemon publishes to a broker."""

import json
import time
from pathlib import Path
from typing import Any, Final

from outrider.journal import AlikeDecision, Journal, OutcomeRecord
from outrider.model.decisions import DecisionRow
from outrider.model.reasons import reason_text
from tests.fixtures.patience import patient
from tests.peers.mosquitto import Mosquitto
from tests.service.mqtt.listener import Listener
from tests.service.running.small_site import SmallSite

ALL_HEARD_WITHIN_S = patient(90.0)

CAMPUS = """
[adapters.campus]
type = "simulated"
machines = 40
weeks = {weeks}
speed = {speed}
"""
POLICIES = "\n[policies.bandit]\n[policies.lowest_watts]\n"


def mqtt_table(broker: Mosquitto, *, user: str = "outrider", **settings: Any) -> str:
    """Return a table `[mqtt]` for a user of the broker, on its plain port."""
    given = {
        "host": "localhost",
        "port": broker.port,
        "username": user,
        "password_file": str(broker.password_file(user)),
        "health_every_s": 1.0,
    } | settings
    return "\n[mqtt]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in given.items())


def campus_site(
    folder: Path, mqtt: str, speed: float = 20_000.0, weeks: float = 1.0, head: str = "",
    policies: str = POLICIES,
) -> SmallSite:  # fmt: skip
    """Return a campus on a fast clock beside a daemon with two policies, one of which learns."""
    campus = CAMPUS.format(weeks=weeks, speed=speed)
    return SmallSite(folder, head=head, tables=campus + policies + mqtt)


def recorded(site: SmallSite) -> dict[int, dict[str, Any]]:
    """Return the decisions and evictions in the journal by their sequence number."""
    rows: dict[int, dict[str, Any]] = {}
    with Journal(site.state / "journal.sqlite", read_only=True) as journal:
        for seq, decision in journal.decisions():
            rows[seq] = _exported(seq, decision)
        told: set[tuple[Any, ...]] = set()
        for seq, outcome in journal.outcomes():
            run = (outcome.time_s, outcome.job, outcome.machine)
            if outcome.ending != "completed" and outcome.machine and run not in told:
                told.add(run)
                rows[seq] = _of_eviction(seq, outcome)
    return rows


_QUIET_LOOKS: Final = 8
"""Polls, a quarter of a second apart: two seconds are a day of the campus."""


def wait_until_all_is_heard(
    site: SmallSite, listener: Listener, at_least: int = 1, within_s: float = ALL_HEARD_WITHIN_S
) -> None:
    """Wait until exactly the journal's decisions and evictions, so many rows, have been heard.

    And until no more come: in the middle of a trace both may be equal for a moment.
    """
    deadline_s = time.monotonic() + within_s
    looks, before_n = 0, -1
    while True:
        heard, kept = set(listener.seqs("decisions", "evictions")), set(recorded(site))
        looks = looks + 1 if heard == kept and len(kept) == before_n else 0
        before_n = len(kept)
        if looks >= _QUIET_LOOKS and len(kept) >= at_least:
            return
        if time.monotonic() > deadline_s:
            missing, made_up = sorted(kept - heard), sorted(heard - kept)
            raise AssertionError(
                f"{len(missing)} of {len(kept)} rows missing {missing[:9]}, {len(made_up)} made up "
                f"{made_up[:9]}; {site.daemon.status()['mqtt']}\n{site.log_text()[-2000:]}"
            )
        time.sleep(0.25)


def _exported(seq: int, decision: DecisionRow) -> dict[str, Any]:
    row = decision.as_row(seq)
    if isinstance(decision, AlikeDecision):
        row["jobs"] = list(decision.jobs)
    return row | {"would": True, "reason_text": reason_text(decision.reason)}


def _of_eviction(seq: int, outcome: OutcomeRecord) -> dict[str, Any]:
    return {
        "time_s": outcome.time_s, "seq": seq, "job": outcome.job, "machine": outcome.machine,
        "reason": outcome.reason, "run_s": outcome.run_s,
    }  # fmt: skip


def _toml(value: Any) -> str:
    return json.dumps(value)

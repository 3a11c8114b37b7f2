"""Endpoints of the site as a whole: status, and utility to a broker."""

from typing import Any

import msgspec

from outrider.model.reasons import CODE_LABELS
from outrider.service.core.user_privacy import named_status
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.shapes.site import Utility
from outrider.service.shapes.status import Status
from outrider.service.views.sentences import trial_results, trial_summary
from outrider.service.views.status import levers_shown, mode_shown, status, utility
from outrider.service.web.access import ACCESS
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery


def whole_status(view: DaemonView) -> dict[str, Any]:
    """Return the core's status together with that of journal, publisher, levers and notes."""
    figures = view.recording.figures()
    ledger = {
        key: figures[key]
        for key in (
            "recording",
            "failure",
            "last_seq",
            "size_bytes",
            "budget_bytes",
            "dropped_rows",
            "snapshot_age_s",
        )
    } | {"rows": sum(figures["rows"].values())}
    mqtt = view.publisher.figures()
    notes = [*view.notes, *view.core.notes()]
    if view.recording.retention.over_budget is not None:
        notes.append(view.recording.retention.over_budget)
    if mqtt is not None and mqtt["failure"]:
        notes.append(f"not publishing: {mqtt['failure']}")
    levers = levers_shown(view.levers())
    notes += [f"lever {one.name}: {one.problem}" for one in levers if one.problem]
    if view.twin.problem:
        notes.append(f"the twin's result is not shown: {view.twin.problem}")
    extra = {
        "twin": view.twin_shown(),
        "expected_starts": view.expected_starts().summarised(),
        "own_clock": view.own_clock,
        "code_labels": CODE_LABELS,
        "ledger": ledger,
        "mqtt": mqtt,
        "notes": notes,
        "levers": levers,
        "trial": _trial_with_texts(msgspec.to_builtins(view.trial()), view.core.config.timezone),
        **mode_shown(view.core.config.mode, view.configured_mode(), view.commands),
    }
    return status(view.core, extra, view.saving())


def _trial_with_texts(trial: dict[str, Any] | None, zone: str) -> dict[str, Any] | None:
    """Return the trial with its sentences; None if there was none."""
    if trial is None:
        return None
    return {**trial, "summary": trial_summary(trial, zone), "results": trial_results(trial)}


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer from memory, with names as names."""
    names, access, status = call.names, call.request.app[ACCESS], whole_status(call.view)
    return {
        **named_status(status),
        "commands": names.in_commands(status["commands"]),
        "mode_limit": names.limit(call.view.mode_limit()),
        "users": "names" if names.shown else "pseudonyms",
        "users_hint": "" if names.shown else access.how_to_see_names,
        "sign_in": not names.shown and access.wants_token,
    }


STATUS = Endpoint(
    name="status",
    path="/api/v1/status",
    summary="Status of the daemon and its site, as the page shows it.",
    handle=handle,
    query=NoQuery,
    answer=Status,
    shared=True,
)


# -- utility ---------------------------------------------------------------------------------------
# Figures for brokers.


async def answer_utility(call: Call[NoQuery]) -> Utility:
    """Answer from memory, with names as names."""
    return utility(call.view.core, call.view.expected_starts())


UTILITY = Endpoint(
    name="utility",
    path="/api/v1/utility",
    summary="Figures by which a broker decides whether to send work here.",
    handle=answer_utility,
    query=NoQuery,
    answer=Utility,
)

ENDPOINTS = (STATUS, UTILITY)

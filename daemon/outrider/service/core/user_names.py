"""How users are shown: by their names to whoever may see these, by pseudonyms to everybody else."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from outrider.service.core.mode_limit import ModeLimit
from outrider.service.core.personal_vos import PersonalVos
from outrider.service.core.pseudonyms import Pseudonyms, is_pseudonym

_VO: Final = "vo"
_WORD: Final = re.compile(r"\w[\w.@/+-]*(?<![.])")


class UserNames:
    """How one client is shown users.

    Args:
        pseudonyms: makes them.
        personal: the VOs with a user in their names.
        shown: by their names.
    """

    def __init__(self, pseudonyms: Pseudonyms, personal: PersonalVos, shown: bool) -> None:
        self._pseudonyms = pseudonyms
        self._personal = personal
        self.shown = shown

    def user(self, name: str) -> str:
        """A user."""
        if self.shown or not name or is_pseudonym(name):
            return name
        return self._pseudonyms.of(name)

    def vo(self, vo: str) -> str:
        """A VO, which may have a user's name in it."""
        if self.shown:
            return vo
        user = self._personal.users.get(vo)
        if user is not None:
            return self._pseudonyms.in_vo(vo, user)
        return self.user(vo) if self._personal.is_full else vo

    @cached_property
    def hides_vos(self) -> bool:
        """Whether any VO is shown by another name."""
        return not self.shown and bool(self._personal.users)

    # -- whole answers --------------------------------------------------------------------------

    def in_jobs(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """A page of jobs."""
        if self.shown:
            return answer
        rows = [{**r, "user": self.user(r["user"]), "vo": self.vo(r["vo"])} for r in answer["jobs"]]
        return {**answer, "jobs": rows}

    def in_machine(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """One machine: the jobs on it, and the runs that ended there."""
        if self.shown:
            return answer
        jobs = [{**r, "user": self.user(r["user"]), "vo": self.vo(r["vo"])} for r in answer["jobs"]]
        runs = answer["runs"]
        if runs is not None:
            runs = [{**run, "vo": self.vo(run["vo"])} for run in runs]
        return {**answer, "jobs": jobs, "runs": runs}

    def in_commands(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Commands: who gave them, by number and name."""
        return rows if self.shown else [self._in_command(row) for row in rows]

    def limit(self, limit: ModeLimit | None) -> Mapping[str, Any] | None:
        """What lowers the mode: who set it."""
        if limit is None:
            return None
        row = msgspec.structs.asdict(limit)
        return row if self.shown else self._in_command(row)

    def _in_command(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if row["uid"] is None:
            return row
        return {**row, "uid": None, "user": self.user(row["user"] or str(row["uid"]))}

    def in_status(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status: who commanded, waits and shares by VO."""
        if not self.shown and "commands" in answer:
            answer = {**answer, "commands": self.in_commands(answer["commands"])}
        if not self.hides_vos:
            return answer
        waits, fairness = answer["wait_s"], answer["fairness"]
        hidden = {name: self._by_vo(fairness[name]) for name in ("share", "target")}
        return {
            **answer,
            "wait_s": {**waits, "by_vo": self._by_vo(waits["by_vo"])},
            "fairness": {**fairness, **hidden},
        }

    def in_utility(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """What one more job of each VO would meet."""
        told = answer["one_more_job"]
        if self.shown or told is None:
            return answer
        kinds = [{**kind, _VO: self.vo(kind[_VO])} for kind in told["kinds"]]
        return {**answer, "one_more_job": {**told, "kinds": kinds}}

    def in_explanation(self, answer: Mapping[str, Any], user: str) -> Mapping[str, Any]:
        """What policies say of a job, in words of their own.

        They may name its user, and VOs of other jobs that are named for theirs. What the batch
        system says names whom it likes, and is not told; such a client's request does not ask it.
        """
        if self.shown:
            return answer
        policies = [
            {**policy, "explanation": self._in_words(policy["explanation"], user)}
            for policy in self.in_rows(answer["policies"])
        ]
        return {
            **answer,
            "held_because": None,
            "batch_system": None,
            "batch_system_errors": [],
            "policies": policies,
            "decisions": self.in_rows(answer["decisions"]),
        }

    def in_rows(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Decisions: policies label their scores as they like, by VOs too."""
        if not self.hides_vos:
            return rows
        return [self.in_row(row) for row in rows]

    def in_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """One decision."""
        if not self.hides_vos or not row["scores"]:
            return row
        hidden = {self._in_words(label, ""): score for label, score in row["scores"].items()}
        return {**row, "scores": hidden}

    def _in_words(self, text: str, user: str) -> str:
        if self._personal.is_full:
            return self._pseudonyms.of(text)
        text = _WORD.sub(lambda found: self.vo(found[0]), text)
        if not user:
            return text
        return re.sub(rf"(?<![\w.-]){re.escape(user)}(?![\w-])", self.user(user), text)

    def _by_vo(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {self.vo(vo): value for vo, value in values.items()}

"""Every policy that a daemon may ask, in one configuration, and the starts that they chose."""

from pathlib import Path

from outrider.journal import Journal
from outrider.plugins.finding import POLICIES, find, load_policy


def names() -> list[str]:
    """Of all policies that are installed and need no oracle."""
    return [name for name in find(POLICIES) if not load_policy(name).needs_oracle]


def tables() -> str:
    """Their tables of a configuration; none may defer a job for longer than three seconds."""
    return "".join(f"[policies.{name}]\n{_bound(name)}" for name in names())


def _bound(name: str) -> str:
    fields = load_policy(name).settings_type.__struct_fields__
    return "max_defer_s = 3.0\n" if "max_defer_s" in fields else ""


def starts(journal: Path) -> set[tuple[str, str, str]]:
    """Policy, job and machine of every start that was chosen so far."""
    with Journal(journal, read_only=True) as opened:
        return {
            (row.policy, row.job, row.machine)
            for _, row in opened.decisions()
            if row.action == "start" and row.machine
        }

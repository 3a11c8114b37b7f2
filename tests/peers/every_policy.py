"""Configuration with every policy that a daemon may run, and the starts that they chose."""

from pathlib import Path

from outrider.journal import Journal
from outrider.plugins.finding import POLICIES, find, load_policy


def names() -> list[str]:
    """Return the names of all installed policies that need no oracle."""
    return [name for name in find(POLICIES) if not load_policy(name).needs_oracle]


def tables() -> str:
    """Return their configuration tables; none may defer a job for longer than three seconds."""
    return "".join(f"[policies.{name}]\n{_bound(name)}" for name in names())


def _bound(name: str) -> str:
    fields = load_policy(name).settings_type.__struct_fields__
    return "max_defer_s = 3.0\n" if "max_defer_s" in fields else ""


def starts(journal: Path) -> set[tuple[str, str, str]]:
    """Return policy, job and machine of every start chosen so far."""
    with Journal(journal, read_only=True) as opened:
        return {
            (row.policy, row.job, row.machine)
            for _, row in opened.decisions()
            if row.action == "start" and row.machine
        }

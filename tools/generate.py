"""Generator of all files made from the code: `make docs` or `python -m tools.generate [FOLDER]`.

It always writes the same bytes. A test compares the committed files with its output.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from outrider.service.demo.example_config import example_toml
from tools.dashboard.dashboards import dashboards
from tools.reference.commands_page import commands_page
from tools.reference.configuration_page import configuration_page
from tools.reference.endpoints_page import endpoints_page
from tools.reference.ledger_tables_page import ledger_tables_page
from tools.reference.metrics_page import metrics_page
from tools.reference.policy_api_page import policy_api_page
from tools.reference.python_api_page import python_api_page

GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    **dashboards(),
    "docs/reference/commands.md": commands_page,
    "docs/reference/configuration.md": configuration_page,
    "docs/reference/endpoints.md": endpoints_page,
    "docs/reference/ledger-tables.md": ledger_tables_page,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/policy-api.md": policy_api_page,
    "docs/reference/python-api.md": python_api_page,
    "systemd/outrider.toml.example": lambda: example_toml(shipped_only=True),
}
"""Paths in the repository, and the function that returns the text of each."""


def write(root: Path) -> list[str]:
    """Write the files that differ below a folder; return their paths."""
    written = []
    for path, text_of in GENERATED.items():
        file, text = root / path, text_of()
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd()):
        print(f"written: {path}")

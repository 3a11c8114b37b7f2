"""Execution of a notebook's code cells in order, without Jupyter.

Jupyter is among no locked packages; a notebook is JSON (nbformat 4), and what its cells do is
Python. No magics, no widgets: a cell that needs them fails here.
"""

import ast
import json
from pathlib import Path
from typing import Any


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook. Raises `ValueError` before nbformat 4.5."""
    document = json.loads(notebook.read_text(encoding="utf-8"))
    if document["nbformat"] != 4 or document["nbformat_minor"] < 5:
        raise ValueError(f"{notebook}: nbformat {document['nbformat']}")
    cells: list[dict[str, Any]] = document["cells"]
    return cells


def code_of(cell: dict[str, Any]) -> str:
    """Return the source of a cell."""
    return "".join(cell["source"])


def run(notebook: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Execute every code cell, in order, in one namespace.

    Returns:
        the namespace, and by the id of the cell the value of its last expression, as Jupyter would
        show it; None where there is none.
    """
    space: dict[str, Any] = {"__name__": "__main__"}
    shown = {}
    for cell in cells_of(notebook):
        if cell["cell_type"] != "code":
            continue
        where = f"{notebook.name}:{cell['id']}"
        body = ast.parse(code_of(cell), where).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), where, "exec"), space)
        shown[cell["id"]] = (
            None
            if last is None
            else eval(compile(ast.Expression(last.value), where, "eval"), space)  # type: ignore[attr-defined]
        )
    return space, shown

"""Rows apart from variants: what scripts may find by the fields that are promised, and the rest."""

from typing import Any


def set_apart(result: dict[str, Any]) -> dict[str, Any]:
    """A reproduction's result as it is printed and written.

    Args:
        result: whose rows say by `plain` whether the promised fields name all that makes them what
            they are; not so for other settings than the policy's own, another shape of utility.

    Returns:
        The same with the others under `variants`, so that no two of `rows` look alike.
    """
    rows = result["rows"]
    return result | {
        "rows": [row for row in rows if row["plain"]],
        "variants": [row for row in rows if not row["plain"]],
    }

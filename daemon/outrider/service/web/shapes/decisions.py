"""The shape of a decision, as the ledger has it."""

from msgspec import Struct

from outrider.service.web.shapes.values import Count, Mode, Unknown


class DecisionRow(Struct):
    """One row of the ledger. Alike jobs share a row: `jobs` lists them."""

    time_s: float
    seq: Count
    job: str
    action: str
    machine: str | None
    cpus: int
    reason: str
    policy: str
    mode: Mode
    propensity: Unknown
    scores: dict[str, Unknown] | None
    input_age_s: Unknown
    input: str
    jobs: list[str] | None = None

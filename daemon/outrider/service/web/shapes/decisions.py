"""The shape of a decision, as the ledger has it."""

from typing import Annotated

from msgspec import Meta, Struct

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
    gate: Annotated[
        str | None,
        Meta(
            description="The gate's answer: `act`, `would`, or `refused: ` with the reason; null "
            "where nothing was to be carried out."
        ),
    ] = None
    jobs: list[str] | None = None

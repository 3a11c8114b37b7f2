"""Rows of squeue made by hand."""

from outrider_adapters.slurm.commands import SEPARATOR
from outrider_adapters.slurm.queue_rows import FIELDS, QueueRow, row_of

PLAIN = {
    "JobArrayID": "7", "State": "PENDING", "SubmitTime": "1000", "EligibleTime": "1000",
    "StartTime": "N/A", "EndTime": "N/A", "UserName": "alice", "Account": "physics",
    "GroupName": "staff", "NumCPUs": "1", "NumNodes": "1", "TimeLimit": "1:00:00",
    "Partition": "batch", "NodeList": "", "RestartCnt": "0", "Feature": "(null)",
    "tres-alloc": "cpu=1,mem=1000M,node=1,billing=1", "tres-per-node": "N/A",
    "tres-per-job": "N/A", "tres-per-task": "N/A", "NumTasks": "1", "ReqNodes": "",
    "Reservation": "(null)", "Reason": "None",
}  # fmt: skip
"""Waiting job, as squeue prints it field by field."""


def line(**changed: str) -> str:
    """Return a line of squeue; names of fields have ``_`` here for ``-``."""
    values = PLAIN | {name.replace("_", "-"): value for name, value in changed.items()}
    return "".join(values[name] + SEPARATOR for name in FIELDS)


def row(**changed: str) -> QueueRow:
    """Return a parsed row of squeue."""
    return row_of(line(**changed))

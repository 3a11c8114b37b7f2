"""Limits by the records of ``scontrol show assoc_mgr``, shortened from a real one."""

import pytest

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.limits import Limit, limit_of
from tests.adapters.slurm.rows import row

SHOWN = """\
Current Association Manager state

Association Records

ClusterName=outrider Account=root UserName= Partition= Priority=0 ID=1
    ParentAccount= Lft=1 DefAssoc=No
    GrpJobs=N(7) GrpJobsAccrue=N(37)
    GrpTRES=cpu=20(12),mem=N(12000),node=N(4),license/matlab=N(2)
ClusterName=outrider Account=physics UserName= Partition= Priority=0 ID=3
    ParentAccount=root(1) Lft=4 DefAssoc=No
    GrpJobs=8(7) GrpJobsAccrue=N(37)
    GrpTRES=cpu=N(12),mem=20000(12000),node=N(4)
    GrpTRESMins=cpu=5000(4100),mem=N(0)
ClusterName=outrider Account=physics UserName=alice(1000) Partition= Priority=0 ID=5
    ParentAccount= Lft=5 DefAssoc=Yes
    GrpJobs=N(7) GrpJobsAccrue=N(37)
    MaxJobs=2(2) MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=90
    MaxTRESPJ=cpu=4,gres/gpu=1

QOS Records

QOS=normal(1)
    GrpJobs=N(6)
    GrpTRES=cpu=N(11),mem=N(11000)
    MaxWallPJ=
QOS=short(2)
    GrpTRES=cpu=6(1)
    MaxWallPJ=30
    User Limits
      1000
        MaxJobsPU=1(1) MaxSubmitJobsPU=N(3)
        MaxTRESPU=cpu=2(1),mem=N(1000)
"""


def limit(code: str, qos: str = "short", partition_qos: str = "", **changed: str) -> Limit | None:
    """Return the limit that a reason names, for a job of alice in physics."""
    of_partitions = tuple(filter(None, [partition_qos]))
    return limit_of(code, row(**changed), qos, of_partitions, lambda *_: SHOWN)


@pytest.mark.parametrize(
    ("code", "changed", "sentence", "never"),
    [
        (
            "QOSMaxCpuPerUserLimit", {"NumCPUs": "2"},
            "QOS short allows 2 CPUs for each user (now: 1 CPU); it asks for 2 CPUs", False,
        ),
        (
            "QOSGrpCpuLimit", {"NumCPUs": "8"},
            "QOS short allows 6 CPUs in all (now: 1 CPU); it asks for 8 CPUs", True,
        ),
        (
            "QOSMaxJobsPerUserLimit", {},
            "QOS short allows 1 running job for each user (now: 1 running job)", False,
        ),
        (
            "AssocGrpJobsLimit", {},
            "account physics allows 8 running jobs in all (now: 7 running jobs)", False,
        ),
        (
            "AssocMaxJobsLimit", {},
            "account physics, for its user, allows 2 running jobs in all (now: 2 running jobs)",
            False,
        ),
        (
            "AssocGrpMemLimit", {"tres_alloc": "cpu=1,mem=9000M,node=1"},
            (
                "account physics allows 20,000 MiB of memory in all (now: 12,000 MiB of memory); "
                "it asks for 9,000 MiB of memory"
            ),
            False,
        ),
        (
            "AssocGrpCpuLimit", {"NumCPUs": "9"},
            "account root allows 20 CPUs in all (now: 12 CPUs); it asks for 9 CPUs", False,
        ),
        (
            "AssocGrpCPUMinutesLimit", {"NumCPUs": "20"},
            (
                "account physics allows 5,000 CPU minutes in all (now: 4,100 CPU minutes); it "
                "asks for 1,200 CPU minutes"
            ),
            False,
        ),
        (
            "AssocMaxWallDurationPerJobLimit", {"TimeLimit": "2:00:00"},
            (
                "account physics, for its user, allows 1:30:00 of run time for one job; it asks "
                "for 2:00:00 of run time"
            ),
            True,
        ),
    ],
)  # fmt: skip
def test_a_limit_with_its_value_and_use(
    code: str, changed: dict[str, str], sentence: str, never: bool
) -> None:
    found = limit(code, **changed)
    assert found is not None
    assert (found.sentence, found.never) == (sentence, never)


def test_the_qos_of_the_partition_counts_first() -> None:
    found = limit("QOSGrpCpuLimit", "normal", "short")
    assert found is not None
    assert found.whose == "QOS short"


def test_what_is_not_reported_is_not_guessed() -> None:
    assert limit("QOSGrpCpuLimit", "normal") is None, "no such limit is set"
    assert limit("QOSUsageThreshold") is None
    assert limit("Priority") is None
    assert limit("AssocGrpJobsLimit", Account="chemistry") is None

    def refused(*_: str) -> str:
        raise CommandError("no accounting")

    assert limit_of("QOSGrpCpuLimit", row(), "short", (), refused) is None

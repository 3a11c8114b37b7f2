"""Tests of hostile texts in jobs of a real Slurm: every job is seen once and correctly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from outrider.journal import verify
from tests.cli.running import shell
from tests.peers.beside_slurm.watched import SCRIPT, submit
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm, missing_reason
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.slurm

CONFIG: Final = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
show_users = "everybody"

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0

[policies.bandit]
"""
ROW: Final = "\x1f".join(["{job}", "COMPLETED", *["1"] * 4, "root", "x", "x", *["1"] * 14, ""])
"""Text that looks like a row of squeue about another user's job."""

JOBS: Final = {
    "an account of two lines": "--account=a\nb",
    "an account with separators": "--account=a\x1fb|JobState=COMPLETED;c",
    "an account with a row in it": f"--account=x\n{ROW}\n",
    "a name with a record in it": "--job-name=x' \" | JobState=COMPLETED\nJobId=1 \x1f NodeList=n2",
    "a comment with a record in it": "--comment=a\nJobId=1 JobState=COMPLETED Reason=None",
    "a folder with a record in it": "--chdir=/tmp/a b\nJobState=COMPLETED",
    "a key with separators": "--wckey=a|b\nc",
    "a long comment": f"--comment={'c' * 1_000}",
    "a long account": f"--account={'a' * 900}",
    "an account of signs": "--account=a@b#c%d |'\"`$(x)",
    "an account that is no number": "--account=nan",
    "an account that is a number": "--account=1e300",
    "an account that is not UTF-8": "--account=\udcff\udcfea",
    "a long name": f"--job-name={'n' * 1_000}",  # Slurm refuses more
    "a name of signs": "--job-name=a@b#c%j%A |'\"`",
    "a name that is not UTF-8": "--job-name=\udcff\udcfe",
    "a large nice value": "--nice=2147483645",
}
"""Options of jobs that are submitted on hold, all by one unprivileged user."""


class Attacked(NamedTuple):
    """Slurm of such jobs, and a daemon next to it.

    Attributes:
        running: root's job, which the others speak of.
        jobs: the others, by what is hostile in them.
    """

    slurm: Slurm
    daemon: DaemonProcess
    running: str
    jobs: dict[str, str]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """Provide a real Slurm with hostile jobs, and a daemon."""
    require_peer("Slurm", missing_reason())
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "job.sh").write_text(SCRIPT)
    (folder / "job.sh").chmod(0o755)
    config = folder / "outrider.toml"
    config.write_text(CONFIG.format(state=folder / "state"))
    slurm = Slurm(folder / "run", 2, cpus=4, memory_mib=8000, settings="DefMemPerCPU=1000\n")
    environment = slurm.environment | {"SLURM_TIME_FORMAT": "%s"}
    with slurm, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        running = submit(slurm, folder, sleep_s=600)
        with DaemonProcess(config, environment) as daemon:
            daemon.wait_until("root's run", lambda s: s["jobs"]["running"] == 1)
            jobs = {
                what: submit(slurm, folder, "-H", "--uid=nobody", word.format(job=running))
                for what, word in JOBS.items()
            }
            daemon.wait_until("the jobs", lambda s: s["jobs"]["held"] == len(JOBS))
            yield Attacked(slurm, daemon, running, jobs)
            assert daemon.stop() == 0


def test_every_job_is_there_once_under_its_own_user_and_in_its_own_state(
    attacked: Attacked,
) -> None:
    states = {"RUNNING": "running", "PENDING": "held"}
    true = []
    for job in (attacked.running, *attacked.jobs.values()):
        row = attacked.slurm.run("squeue", "-h", "-j", job, "-o", "%T|%u").strip()
        state, user = row.split("|")
        true.append((f"outrider:{job}", user, states[state]))
    shown = attacked.daemon.get("/api/v1/jobs?limit=200")["jobs"]
    assert sorted((job["job"], job["user"], job["state"]) for job in shown) == sorted(true)
    status = attacked.daemon.status()
    assert status["jobs"]["completed"] == status["jobs"]["removed"] == 0
    assert status["adapters"][0]["rejected"] == {}
    assert not any(status["set_aside"].values())
    assert status["evictions"] == dict.fromkeys(status["evictions"], 0)


def test_an_account_is_one_name_in_one_line(attacked: Attacked) -> None:
    vos = {job["job"]: job["vo"] for job in attacked.daemon.get("/api/v1/jobs?limit=200")["jobs"]}
    jobs = {what: f"outrider:{job}" for what, job in attacked.jobs.items()}
    assert vos[jobs["an account of two lines"]] == "a b"
    assert vos[jobs["an account with separators"]] == "a b|jobstate=completed;c"
    assert all(vo.isprintable() for vo in vos.values())


def test_what_is_shown_can_be_read_by_those_for_whom_it_is(attacked: Attacked) -> None:
    assert list(text_string_to_metric_families(attacked.daemon.text("/metrics")))
    for job in attacked.jobs.values():
        reported: dict[str, Any] = attacked.daemon.get(
            f"/api/v1/explain/{quote(f'outrider:{job}')}"
        )
        assert (reported["state"], reported["batch_system"]["code"]) == ("held", "JobHeldUser")
        message = shell("explain", f"outrider:{job}", "--url", attacked.daemon.url)
        assert message.code == 0, message.err
        assert all(line.isprintable() for line in message.out.split("\n"))


def test_after_all_of_it_the_journal_is_whole(attacked: Attacked) -> None:
    attacked.slurm.run("scancel", *attacked.jobs.values())
    attacked.daemon.wait_until("their end", lambda s: s["jobs"]["removed"] == len(JOBS))
    [left] = attacked.daemon.get("/api/v1/jobs?state=running")["jobs"]
    assert (left["job"], left["user"]) == (f"outrider:{attacked.running}", "root")
    journal = Path(attacked.daemon.config.parent / "state" / "journal.sqlite")
    assert verify(journal).problems == []

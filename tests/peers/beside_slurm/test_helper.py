"""Tests of the helper for sites without slurmdbd, on a real Slurm, started as by systemd."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from outrider.api import PeerError
from outrider_adapters.slurm.acting.helper.requests import MAX_BYTES
from tests.peers.beside_slurm.levers import LEASE_S, Site, as_user, decision
from tests.peers.beside_slurm.watched import of_slurm, submit
from tests.peers.presence import require_peer
from tests.peers.processes import end
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm

NOBODY = 65534
"""Uid of the daemon's user here."""
SPEAK = """\
import os, socket, sys
os.setresuid(int(sys.argv[2]), int(sys.argv[2]), int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(sys.stdin.buffer.read())
    sys.stdout.buffer.write(s.makefile("rb").readline())
"""


class Helper:
    """Helper, started at the first connection, and its log."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.path = str(folder / "outrider-slurm.sock")
        self.slurm = slurm
        self._log = folder / "log"
        command = (
            sys.executable,
            "-m",
            "outrider_adapters.slurm.acting.helper",
            "--user",
            "nobody",
        )
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                ["systemd-socket-activate", f"--listen={self.path}",
                 *(f"--setenv={name}={os.environ[name]}" for name in slurm.environment),
                 *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        slurm.wait_until("its socket", Path(self.path).exists)
        Path(self.path).chmod(0o777)  # who may ask is the helper's own matter here

    def log(self) -> str:
        return self._log.read_text()

    def ask(self, request: Any, uid: int = NOBODY) -> Any:
        """Return the answer to a user's request; None: it is rejected."""
        text = request if isinstance(request, bytes) else json.dumps(request).encode() + b"\n"
        done = subprocess.run(
            [sys.executable, "-c", SPEAK, self.path, str(uid)],
            input=text, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        return json.loads(done.stdout) if done.stdout else None


@contextmanager
def started(slurm: Slurm) -> Iterator[Helper]:
    """Provide a helper in a folder that all users may enter, as /run is."""
    missing = None if shutil.which("systemd-socket-activate") else "no systemd-socket-activate"
    require_peer("systemd", missing)
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        helper = Helper(Path(made), slurm)
        try:
            yield helper
        finally:
            end(helper.process)


@pytest.fixture(scope="module")
def helper(slurm: Slurm) -> Iterator[Helper]:
    """Provide the helper that acts for a daemon without rights."""
    with started(slurm) as running:
        yield running


def changeable(slurm: Slurm, job: str) -> list[str]:
    """Return the attributes of a job that a request could change."""
    shown = of_slurm(slurm, job)
    return [shown[name] for name in ("JobState", "StartTime", "Priority", "Nice", "Deadline")]


def update(*jobs: str, **values: Any) -> dict[str, Any]:
    return {"verb": "update", "jobs": jobs, **values}


def test_a_daemon_without_rights_acts_by_the_helper(
    slurm: Slurm, folder: Path, helper: Helper, full: list[str]
) -> None:
    assert full
    job, array = submit(slurm, folder), submit(slurm, folder, "--array=1-3")
    with as_user(slurm, NOBODY) as settings:
        config = {"config": settings["config"]}
        with as_uid(NOBODY):
            refused = Site(slurm, **config).defer(job)
            site = Site(slurm, fence=True, helper=helper.path, **config)
            assert site.defer(job, f"{array}_1", f"{array}_3") == {}
        assert refused == {job: f"scontrol: Invalid user id for job {job}"}
        assert site.ahead_s(job) > LEASE_S / 2
        time.sleep(LEASE_S / 2)
        until_s = site.eligible_s(job)
        with as_uid(NOBODY), closing(site.lever()) as lever:
            for _ in range(2):  # the fence is submitted, and then renewed
                assert lever.apply([decision(job, "defer")]) == {}
                time.sleep(LEASE_S / 2)
        assert site.eligible_s(job) > until_s
        with as_uid(NOBODY):
            assert site.withdraw(job) == {}
        assert site.ahead_s(job) == 0
    said = helper.log()
    assert f'"jobs":["{job}","{array}_[1,3]"]' in said
    assert f"by uid {NOBODY}, pid {os.getpid()}: done" in said
    assert '"verb":"renew_fence"' in said


@contextmanager
def as_uid(uid: int) -> Iterator[None]:
    """Change this process's user within the block."""
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_a_fence_is_renewed_and_no_other_job_is_given_a_deadline(
    slurm: Slurm, folder: Path, helper: Helper, full: list[str]
) -> None:
    assert full
    job = submit(slurm, folder)
    now_s = int(time.time())
    begin = ("--begin=now+60", f"--deadline=uts{now_s + 61}", "--job-name=outrider-acts")
    words = ("-o", "/dev/null", "--chdir=/", "--wrap=true")
    nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    slurm.run("chmod", "a+rx", *(str(p) for p in (slurm.run_dir, *slurm.run_dir.parents)))
    fence = slurm.run(*nobody, "sbatch", "--parsable", *begin, *words).strip()
    renewed = {"verb": "renew_fence", "until_s": now_s + 90}
    assert helper.ask(renewed | {"number": int(fence)}) == {"ok": True, "said": ""}
    assert of_slurm(slurm, fence)["Deadline"] == str(now_s + 91)
    said = f"{job} is not a fence of nobody"
    assert helper.ask(renewed | {"number": int(job)}) == {"ok": False, "said": said}
    assert of_slurm(slurm, job)["Deadline"] == "N/A"
    slurm.run("scancel", fence)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"verb": "hold", "jobs": ["{job}"]}, "Invalid value 'hold' - at `$.verb`"),
        (update("{job}", begin_s=0, priority=1), "unknown field `priority`"),
        (update("{job}"), "nothing to give"),
        (update("{job} Priority=1", begin_s=0), "Expected `str` matching regex"),
        (update("{job}\nPriority=1", begin_s=0), "Expected `str` matching regex"),
        (update("{job},1", begin_s=0), "Expected `str` matching regex"),
        (update("--help", begin_s=0), "Expected `str` matching regex"),
        (update("{job}_[1-2,%1]", begin_s=0), "Expected `str` matching regex"),
        (update(*["{job}"] * 101, begin_s=0), "length <= 100"),
        (update(begin_s=0), "length >= 1"),
        (update("{job}", begin_s="0 Priority=1"), "Expected `int | null`, got `str`"),
        (update("{job}", begin_s=4_294_967_295), "a start time more than 86400 s ahead"),
        (update("{job}", nice=9_999_999_999), "Expected `int` <= 2000000000"),
        ({"verb": "renew_fence", "number": 1, "until_s": 4_294_967_295}, "more than 86400 s"),
        (b"\xff\xfe\n", "invalid request"),
        (b"[]\n", "invalid request"),
        (b'{"verb":"check"}\n{"verb":"check"}\n', "invalid request"),
        (b'{"verb":"che', "it ends before its line does"),
        (b"x" * 1_000_000, f"more than {MAX_BYTES} bytes"),
        (b'{"verb":"update","jobs":["1"' + b',"1"' * 300_000 + b"]}\n", "more than"),
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_is_refused_and_nothing_is_done(
    slurm: Slurm, folder: Path, helper: Helper, request_: Any, said: str
) -> None:
    job = submit(slurm, folder, "--begin=now+900")
    before = changeable(slurm, job)
    if not isinstance(request_, bytes):
        request_ = json.loads(json.dumps(request_).replace("{job}", job))
    answer = helper.ask(request_)
    if answer is not None:  # a sender of much may not hear why
        assert answer["ok"] is False
        assert said in answer["said"]
    assert changeable(slurm, job) == before
    assert helper.ask({"verb": "check"}) == {"ok": True, "said": ""}, "it goes on"


def test_another_user_is_not_heard(slurm: Slurm, folder: Path, helper: Helper) -> None:
    job = submit(slurm, folder, "--begin=now+900")
    before = changeable(slurm, job)
    assert helper.ask(update(job, begin_s=0), uid=1) is None
    assert changeable(slurm, job) == before
    assert "refused: uid 1, pid " in helper.log()


def test_one_that_says_nothing_keeps_others_waiting_for_seconds_alone(helper: Helper) -> None:
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(helper.path)
        slow.sendall(b'{"verb":')
        began_s = time.monotonic()
        assert helper.ask({"verb": "check"}) == {"ok": True, "said": ""}
        assert time.monotonic() - began_s > 1.0, "it was waited for"
    assert "no answer: " in helper.log()


def test_a_helper_that_is_gone_leaves_jobs_to_their_leases(
    slurm: Slurm, folder: Path, full: list[str]
) -> None:
    job, other = submit(slurm, folder), submit(slurm, folder)
    with as_user(slurm, NOBODY) as commands, started(slurm) as helper:
        site = Site(slurm, helper=helper.path, **commands)
        assert site.defer(job) == {}
        until_s = site.eligible_s(job)
        end(helper.process)
        later_s = time.time() + 1
        slurm.wait_until("a later second", lambda: time.time() >= later_s)
        noted = dict(site.adapter.undo_log.entries)
        gone = r"the helper at \S+ cannot be reached: .*; use: systemctl enable"
        with pytest.raises(PeerError, match=gone):
            site.defer(job, other)
        assert site.adapter.undo_log.entries == noted
        assert (site.eligible_s(job), site.ahead_s(other)) == (until_s, 0)
        slurm.run("scancel", *full)
        both = lambda: {job, other} <= set(slurm.jobs("R", "CD"))  # noqa: E731
        slurm.wait_until("their runs", both, LEASE_S + 10.0)

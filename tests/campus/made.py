"""Small campuses: one written by hand, and any that hypothesis can think of."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from outrider.model.clusters import ClusterSpec
from outrider.model.opening import OpeningHours
from outrider.virtual.campus import Campus

SITE = """\
start = 2010-01-04T00:00:00
reboot = "03:00"
[clusters.lab]
open = "mon-fri 09:00-17:00, sat 10:00-14:00"
"""
TABLES = {
    "machines.csv": "machine,cluster,active_w,idle_w,sleep_w\nm0,lab,57,40,2\nm1,hall,114,67,3\n",
    "owners.csv": "machine,login_s,logout_s\nm0,100.5,200\nm1,150,160.2\nm0,300,300\n",
    "jobs.csv": (
        "job,submit_s,run_s,kill_s,user,vo\n"
        "a,10,3600.5,,ann,bio\nb,20,,7200,bob,phys\nc,20,5,99,ann,\n"
    ),
}
COLUMNS = (
    "machine_cluster", "active_w", "idle_w", "sleep_w", "session_machine", "login_s", "logout_s",
    "submit_s", "run_s", "kill_s",
)  # fmt: skip


def write_sample(folder: Path, **changed: str) -> Path:
    """The hand-made campus, with some files changed: ``site="..."``, ``owners="..."``."""
    (folder / "site.toml").write_text(changed.get("site", SITE), encoding="utf-8")
    for name, text in TABLES.items():
        given = changed.get(name.removesuffix(".csv"), text)
        (folder / name).write_text(given, encoding="utf-8")
    return folder


def assert_equal(one: Campus, other: Campus) -> None:
    """All of two campuses is the same, but for their names and the numbering of users."""
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("start", "reboot_s", "idle_before_job_open_s", "idle_before_job_closed_s",
                 "reconsider_s", "machine_names", "job_names", "skipped"):  # fmt: skip
        assert getattr(one, name) == getattr(other, name), name
    assert [told(spec) for spec in one.clusters] == [told(spec) for spec in other.clusters]
    assert users(one) == users(other)


def assert_equal_but_last_job(longer: Campus, shorter: Campus) -> None:
    """`longer` is `shorter` and one job more: both passes of the reader agree on the rest."""
    assert longer.job_names[:-1] == shorter.job_names
    assert users(longer)[:-1] == users(shorter)
    for name in ("submit_s", "run_s", "kill_s"):
        np.testing.assert_array_equal(getattr(longer, name)[:-1], getattr(shorter, name))


def told(spec: ClusterSpec) -> tuple[Any, ...]:
    """A cluster as plain values."""
    return (spec.name, spec.hours.text, spec.sleep_after_open_s, spec.sleep_after_closed_s)


def users(campus: Campus) -> list[tuple[str, str]]:
    """User and VO of each job."""
    return [
        (campus.user_names[user], campus.vo_names[vo])
        for user, vo in zip(campus.user, campus.vo, strict=True)
    ]


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1
)
TIMES = st.floats(0, 4e8, allow_subnormal=False)
DELAYS = st.floats(0, 1e6) | st.just(float("inf"))
HOURS = st.sampled_from(["always", "never", "mon-fri 09:00-17:00", "sat 22:00-02:00"])


@st.composite
def campuses(draw: st.DrawFn) -> Campus:
    """Any campus of a few machines, sessions and jobs."""
    cluster_names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    machine_names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    machine = st.integers(0, len(machine_names) - 1)
    sessions = sorted(
        draw(st.lists(st.tuples(TIMES, TIMES, machine), max_size=8)), key=lambda row: min(row[:2])
    )
    maybe = TIMES | st.just(float("nan"))
    job = st.tuples(TIMES, maybe, maybe, st.sampled_from(["ann", "bob", ""]), NAMES)
    jobs = sorted(draw(st.lists(job, max_size=8)), key=lambda row: row[0])
    job_names = draw(st.lists(NAMES, min_size=len(jobs), max_size=len(jobs), unique=True))
    user_names = list(dict.fromkeys(row[3] for row in jobs))
    vo_names = list(dict.fromkeys(row[4] for row in jobs))

    def watts() -> Any:
        return floats(draw(st.floats(0, 1e4)) for _ in machine_names)

    return Campus(
        name="made",
        start=draw(st.datetimes(min_value=wall_clock("1970-01-01"))),
        reboot_s=draw(st.none() | st.integers(0, 86_399).map(float)),
        idle_before_job_open_s=draw(DELAYS),
        idle_before_job_closed_s=draw(DELAYS),
        reconsider_s=draw(st.floats(0.1, 1e6)),
        clusters=[
            ClusterSpec(name, OpeningHours(draw(HOURS)), draw(DELAYS), draw(DELAYS))
            for name in cluster_names
        ],
        machine_names=machine_names,
        machine_cluster=integers(
            draw(st.integers(0, len(cluster_names) - 1)) for _ in machine_names
        ),
        active_w=watts(),
        idle_w=watts(),
        sleep_w=watts(),
        session_machine=integers(row[2] for row in sessions),
        login_s=floats(min(row[:2]) for row in sessions),
        logout_s=floats(max(row[:2]) for row in sessions),
        job_names=job_names,
        submit_s=floats(row[0] for row in jobs),
        run_s=floats(row[1] for row in jobs),
        kill_s=floats(row[0] + row[2] for row in jobs),
        user=integers(user_names.index(row[3]) for row in jobs),
        vo=integers(vo_names.index(row[4]) for row in jobs),
        user_names=user_names,
        vo_names=vo_names,
    )


def wall_clock(text: str) -> dt.datetime:
    """A local time without zone, as in ``site.toml``."""
    return dt.datetime.fromisoformat(text)


def floats(values: Any) -> Any:
    """A float64 column."""
    return np.array(list(values), dtype=np.float64)


def integers(values: Any) -> Any:
    """An int32 column."""
    return np.array(list(values), dtype=np.int32)

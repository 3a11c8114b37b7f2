"""Hand-written answers of a daemon of a small site."""

import math
from typing import Any

T0 = 1_795_252_320.0  # 21 November 2026, 09:12 UTC
NOW = T0 + 8 * 3600 + 28 * 60

BOUNDS_S = [
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0,
    172800.0, 604800.0, None,
]  # fmt: skip
COUNTS = [612, 118, 64, 71, 133, 96, 58, 44, 21, 11, 4, 2, 0, 0, 0]

CLUSTERS = [
    ("open-access-library", 118, 31, 58, 17, 57.0),
    ("physics-teaching", 64, 12, 40, 6, 84.0),
    ("medical-school-computing-rooms", 52, 20, 11, 14, 61.5),
    ("night-only", 40, 0, 0, 22, None),
    ("compute-nodes", 24, 2, 22, 0, 212.0),
]


def waits(mean: float | None, n: int) -> dict[str, Any]:
    unknown = dict.fromkeys(("std", "median", "p90", "p95", "p99", "max", "censored_n"))
    return {"mean": mean, "n": n, **unknown}


def learned() -> dict[str, Any]:
    rows = []
    for lost_h, label in enumerate(["0 h lost", "1 h lost", "2 to 4 h lost", "5 h or more lost"]):
        values: list[float | None] = []
        for hour in range(24):
            day = math.exp(-(((hour - 13.5) / 5.0) ** 2))
            values.append(None if (hour + lost_h) % 11 == 7 else 0.9 - 0.7 * day - 0.06 * lost_h)
        rows.append({"label": label, "values": values})
    return {
        "title": "value of the best choice, by hour of day and hours lost",
        "columns": [f"{hour:02d}" for hour in range(24)],
        "rows": rows,
    }


def policy(name: str, description: str, **known: Any) -> dict[str, Any]:
    return {
        "name": name,
        "role": "shadow",
        "description": description,
        "decisions": 640,
        "discipline": "first_fit",
        "by_action": {"start": 567, "defer": 73},
        "agreed": 193,
        "disagreed": 374,
        "agreement_ratio": 193 / 567,
        "reward_mean": None,
        "reward_n": 0,
        "longest_deferral_s": 0.0,
        "reconsider_s": 3600.0,
        "learned": None,
        "broken": None,
    } | known


DECISION = {
    "time_s": NOW - 900,
    "seq": 4711,
    "job": "1042.0",
    "action": "defer",
    "machine": None,
    "cpus": 1,
    "reason": "best",
    "policy": "bandit",
    "mode": "shadow",
    "propensity": 0.925,
    "scores": {"queue": 0.41, "night-only": math.nan},
    "input_age_s": 1.5,
    "input": "full",
    "gate": None,
}

STATUS: dict[str, Any] = {
    "version": "0.1.0",
    "mode": "shadow",
    "timezone": "UTC",
    "since_s": T0,
    "now_s": NOW,
    "own_clock": True,
    "sentence": "shadow since 21 Nov 09:12: 1,234 jobs seen, mean wait 3.2 min, 12.3 kWh useful "
    "and 4.5 kWh wasted; bandit would have chosen the same cluster in 34 % of 567 starts; saving: "
    "not estimated yet",
    "jobs": {
        "queued": 86,
        "running": 131,
        "suspended": 2,
        "held": 5,
        "submitted": 1234,
        "completed": 987,
        "removed": 23,
    },
    "wait_s": {
        "all": waits(192.4, 1234),
        "by_class": {"batch": waits(230.1, 1000), "interactive": waits(math.nan, 0)},
        "by_vo": {"physics": waits(192.4, 1234)},
    },
    "wait_buckets_s": [list(pair) for pair in zip(BOUNDS_S, COUNTS, strict=True)],
    "machines": {"busy": 131, "free": 65, "owner": 59, "asleep": 25, "closed": 18},
    "clusters": [
        dict(zip(("name", "machines", "free", "busy", "owner", "active_w"), row, strict=True))
        for row in CLUSTERS
    ],
    "energy_wh": {
        "goodput": 12_310.0,
        "badput": 4_520.0,
        "open": 3_870.0,
        "idle": 6_240.0,
        "sleep": 310.0,
        "owner": None,
    },
    "energy_measured_wh": dict.fromkeys(
        ("goodput", "badput", "open", "idle", "sleep", "owner"), 0.0
    ),
    "energy_measured_ratio": 0.0,
    "power_source": "table",
    "goodput_s": 612_000.0,
    "badput_s": 148_000.0,
    "utility": {"total": 401_000.0, "per_step": 0.66},
    "starts": 1_391,
    "evictions": {
        "owner": 142,
        "reboot": 38,
        "preempted": 0,
        "drained": 0,
        "failed_start": 3,
        "removed": 11,
        "held": 2,
        "killed": 0,
        "unknown": 7,
    },
    "fairness": {
        "utility": 0.934,
        "time_mean": 0.951,
        "windowed": 0.887,
        "share": {"physics": 0.46, "biology": 0.31, "chemistry": 0.2, "guests": 0.03},
        "target": {"physics": 0.4, "biology": 0.4, "chemistry": 0.2, "guests": 0.0},
    },
    "policies": [
        policy("fifo", "First come, first served: the first machine that fits."),
        policy(
            "bandit",
            "Learns at which cluster and hour a run survives; may wait for a better one.",
            agreed=193,
            reward_mean=-0.1834,
            reward_n=512,
            longest_deferral_s=11_400.0,
            learned=learned(),
        ),
        policy(
            "lowest_watts",
            "The free machine that draws least.",
            agreed=0,
            disagreed=0,
            agreement_ratio=None,
            decisions=0,
            discipline="easy",
            by_action={"start": 0, "defer": 0},
        ),
    ],
    "saving": {"text": "not estimated yet", "wh": None},
    "twin": None,
    "adapters": [
        {
            "label": "campus",
            "type": "logtail",
            "up": True,
            "input_age_s": 1.4,
            "events": {"submitted": 1234, "started": 1391, "evicted": 203, "completed": 987},
            "duplicates": 17,
            "rejected": {"half_line": 1},
            "ignored": {"image_size": 5120},
            "note": "reading /var/log/condor/EventLog",
            "problem": "",
            "silent": {},
            "inferred": True,
        }
    ],
    "repairs": {"missing_submit": 4},
    "late": 3,
    "set_aside": {"after_end": 2, "fault": 0},
    "names": {
        kind: {"named": 3, "most": 1000, "folded": 0}
        for kind in ("user", "vo", "class", "cluster", "machine", "eligible")
    },
    "no_data": [],
    "discipline": {
        "name": "first_fit",
        "source": "adapter",
        "why": "adapter pool (mock_condor) proposes first_fit",
    },
    "gate": {"would_act": 560, "would_refuse": {"stale_input": 4, "budget": 3}},
    "ledger": {
        "recording": True,
        "failure": None,
        "rows": 4711,
        "last_seq": 4711,
        "size_bytes": 1_843_200,
        "budget_bytes": 10_000_000_000,
        "dropped_rows": 0,
        "snapshot_age_s": 42.0,
    },
    "notes": ["An HTCondor event log tells no reason of an eviction; 7 are counted as unknown."],
}

BATCH_SYSTEM: dict[str, Any] = {
    "adapter": "slurm",
    "code": "Resources",
    "sentence": "what it asks for is not free",
    "never": False,
    "remedies": ["ask for less", "wait for jobs to end there"],
    "machines": 212,
    "clauses": [{"text": "CPUs >= 4 on a node", "machines": 1212, "without_it": 300}],
    "expected_start_s": NOW + 1800,
    "ahead": 0,
}

START = {"low_s": NOW + 600.0, "median_s": NOW + 2_400.0, "high_s": NOW + 8_700.0}
"""17:50, 18:20 and 20:05."""
SCORES: dict[str, Any] = {
    "submission": {"n": 1_240, "coverage_ratio": 0.81, "pinball_s": 90.0},
    "hourly": {"n": 0, "coverage_ratio": None, "pinball_s": None},
    "batch_system": {"n": 320, "coverage_ratio": 0.02, "pinball_s": 1_200.0},
    "beside_batch_system": {"n": 320, "coverage_ratio": 0.8, "pinball_s": 300.0},
}
EXPECTED_STARTS: dict[str, Any] = {
    "source": "starts.json",
    "asked_s": NOW - 40.0,
    "rule": "easy",
    "not_said": None,
    "n": 86,
    "not_known_n": 3,
    "scores": SCORES,
    "under_asked_s": NOW - 180.0,
    "under_not_said": {"lowest_watts": "it plans the whole queue"},
}
JOB_START: dict[str, Any] = {
    "answer": "interval",
    "start": START,
    "why": None,
    "source": "starts.json",
    "asked_s": NOW - 40.0,
    "rule": "easy",
    "scores": SCORES,
    "under": [
        {
            "policy": "fifo",
            "answer": "next_pass",
            "start": dict.fromkeys(START, NOW - 180.0),
            "why": None,
        },
        {
            "policy": "bandit",
            "answer": "not_known",
            "start": None,
            "why": "a new kind of burst",
        },
        {
            "policy": "lowest_watts",
            "answer": "not_said",
            "start": None,
            "why": "it plans the whole queue",
        },
    ],
    "planned_s": NOW + 900.0,
    "under_asked_s": NOW - 180.0,
}

ONE_MORE: dict[str, Any] = {
    "vo": "physics", "class": "batch", "cpus": 1, "estimate_s": 7_200.0, "n": 412,
    "wait_s": {"low": 120.0, "median": 600.0, "high": 5_400.0}, "utility": 0.84,
}  # fmt: skip

VOS: list[dict[str, Any]] = [
    {
        "vo": "guests", "share": 0.03, "target": 0.0, "started": 0, "wait_mean_s": None,
        "wait_p50_s": None, "wait_p95_s": None, "kept_cpu_s": 0.0, "thrown_away_cpu_s": 0.0,
    },
    {
        "vo": "physics", "share": 0.46, "target": 0.4, "started": 1_234, "wait_mean_s": 192.4,
        "wait_p50_s": {"low": 60.0, "about": 150.0, "high": 300.0},
        "wait_p95_s": {"low": 604_800.0, "about": None, "high": None},
        "kept_cpu_s": 108_000.0, "thrown_away_cpu_s": 36_000.0,
    },
]  # fmt: skip
USER: dict[str, Any] = {
    "user": "ada", "vo": "physics", "queued": 86, "running": 131, "suspended": 2, "held": 5,
    "busy_cpus": 133, "wait_p50_s": 600.0, "wait_p95_s": 3_000.0, "longest_wait_s": 3_600.0,
    "lost_s": 10_800.0,
}  # fmt: skip

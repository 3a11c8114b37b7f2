"""Fake commands of OpenPBS and Torque, which answer as documented, without a server.

The shapes are those of "qstat -f -F json" and "pbsnodes -F json" in the PBS Professional reference
guide and of the XML of Torque's "qstat -x" and "pbsnodes -x". A real server was not at hand.

Times are printed by the zone of whoever asks, as those commands do by ctime(3) (here where
`by_zone` says so, else they are UTC), and "qalter -a" takes them so (`[[[[CC]YY]MM]DD]hhmm[.SS]`,
the section "qalter" of the same guide and of Torque's manual): it replaces the time at which the
job becomes eligible, for jobs that exist and by those who may, and goes on with the others. What
the server makes of it (W, no etime; later Q, no Execution_Time, etime of that moment) is in
job_wait_over and svr_setjobstate of both servers.
"""

# ruff: noqa: T201 - commands print

import html
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

SERVER: Final = "pbs.test"
NODES: Final = {"n1": 4, "n2": 4, "n3": 8}

_COMMAND: Final = """\
#!{python} -ES
import sys
sys.path.insert(0, {here!r})
import fake_pbs
sys.exit(fake_pbs.answer({state!r}, {name!r}, sys.argv[1:]))
"""


class FakePBS:
    """Folder of commands, and the state that they print.

    Args:
        folder: new.
        dialect: ``openpbs`` or ``torque``.
        history: whether OpenPBS still tells of jobs that have left.
        broken: whether it writes users' environments as they are, which makes it no JSON.
        by_zone: whether times go by the zone of the process that asks.
    """

    def __init__(
        self,
        folder: Path,
        dialect: str = "openpbs",
        *,
        history: bool = True,
        broken: bool = False,
        by_zone: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._file = folder / "state.json"
        self.state: dict[str, Any] = {
            "dialect": dialect, "history": history, "broken": broken, "down": False, "next": 1,
            "by_zone": by_zone, "ahead_s": 0.0, "server_off_s": 0.0, "may_alter": True, "jobs": {},
            "nodes": {name: {"ncpus": n, "state": "free"} for name, n in NODES.items()},
        }  # fmt: skip
        for name in ("qstat", "pbsnodes", "qalter"):
            here = str(Path(__file__).parent)
            path = folder / name
            path.write_text(
                _COMMAND.format(python=sys.executable, here=here, state=str(self._file), name=name)
            )
            path.chmod(0o755)
        self.save()

    def save(self) -> None:
        """Write `state`, so that the commands print its changes from now on."""
        whole = self._file.with_suffix(".new")
        whole.write_text(json.dumps(self.state))
        whole.rename(self._file)

    def load(self) -> None:
        """Read what the commands have changed since."""
        self.state = json.loads(self._file.read_text())

    @property
    def now_s(self) -> float:
        """Return the time at the site, which is ahead by the calls of `wait`."""
        return time.time() + float(self.state["ahead_s"])

    def wait(self, seconds: float) -> None:
        """Let time pass without waiting for it."""
        self.load()
        self.state["ahead_s"] += seconds
        self.save()

    def submit(self, at_s: float | None = None, **attributes: str) -> str:
        """Create a job and return its name. Attributes of several parts have two underscores."""
        job = f"{self.state['next']}.{SERVER}"
        self.state["next"] += 1
        made = int(time.time() if at_s is None else at_s)
        reported = {name.replace("__", "."): value for name, value in attributes.items()}
        self.state["jobs"][job] = {
            "Job_Owner": "ann@login", "job_state": "Q", "queue": "workq", "ctime": made,
            "qtime": made, "etime": made, "mtime": made, "egroup": "physics",
            "Hold_Types": "n", "Resource_List.ncpus": "2", "Resource_List.walltime": "01:00:00",
            "Variable_List": "PBS_O_HOME=/home/ann",
        } | reported  # fmt: skip
        self.save()
        return job

    def change(self, job: str, **attributes: Any) -> None:
        """Set attributes of a job; None takes one away."""
        ad = self.state["jobs"][job]
        for name, value in attributes.items():
            ad[name.replace("__", ".")] = value
        self.state["jobs"][job] = {name: value for name, value in ad.items() if value is not None}
        self.save()

    def start(self, job: str, at_s: float | None = None, node: str = "n1") -> None:
        """Let a job start."""
        began = int(time.time() if at_s is None else at_s)
        start = "start_time" if self.state["dialect"] == "torque" else "stime"
        place = f"{node}/0-1" if self.state["dialect"] == "torque" else f"{node}/0*2"
        self.change(job, job_state="R", exec_host=place, mtime=began, **{start: began})

    def end(self, job: str, at_s: float | None = None, status: int = 0) -> None:
        """End a job: it leaves OpenPBS's queue, and stays in Torque's as complete."""
        ended = int(time.time() if at_s is None else at_s)
        if self.state["dialect"] == "torque":
            self.change(job, job_state="C", exit_status=status, comp_time=ended)
        else:
            self.change(job, job_state="F", Exit_status=status, mtime=ended, obittime=ended)

    def leave(self, job: str) -> None:
        """Remove a job without a trace."""
        del self.state["jobs"][job]
        self.save()

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Let the server be silent within the block."""
        self.state["down"] = True
        self.save()
        try:
            yield
        finally:
            self.state["down"] = False
            self.save()


# -- what the commands print ------------------------------------------------------------------


def answer(state_file: str, program: str, words: list[str]) -> int:
    """Print what a command would, and return its exit code."""
    state = json.loads(Path(state_file).read_text())
    now_s = int(time.time() + state["ahead_s"] + state["server_off_s"])
    if _let_begin(state, now_s):
        _write(state_file, state)
    if not state["by_zone"]:
        os.environ["TZ"] = "UTC0"
        time.tzset()
    is_torque = state["dialect"] == "torque"
    if words == ["--version"]:
        print("Version: 6.1.2" if is_torque else "pbs_version = 23.06.06", file=_version(is_torque))
        return 0
    if state["down"]:
        print(f"{program}: cannot connect to server {SERVER} (errno=111)", file=sys.stderr)
        return 255
    if program == "qalter":
        return _alter(state_file, state, words, now_s)
    if words == ["-B", "-f"]:
        print(f"Server: {SERVER}\n    job_history_enable = {state['history']}")
        return 0
    if ("-F" in words) == is_torque:
        print(f"{program}: invalid option", file=sys.stderr)
        return 2
    if program == "pbsnodes":
        print(_torque_nodes(state) if is_torque else _openpbs_nodes(state))
        return 0
    if is_torque:
        print(_torque_jobs(state))
        return 0
    return _openpbs_jobs(state, words)


def _write(state_file: str, state: dict[str, Any]) -> None:
    whole = Path(state_file).with_suffix(".altered")
    whole.write_text(json.dumps(state))
    whole.rename(state_file)


def _let_begin(state: dict[str, Any], now_s: int) -> bool:
    """Return whether jobs were queued whose time has come."""
    timed = [ad for ad in state["jobs"].values() if isinstance(ad.get("Execution_Time"), int)]
    over = [ad for ad in timed if ad["Execution_Time"] <= now_s]
    for ad in over:
        del ad["Execution_Time"]
        if ad["job_state"] == "W":
            ad.update(job_state="Q", etime=now_s)
    return bool(over)


def _alter(state_file: str, state: dict[str, Any], words: list[str], now_s: int) -> int:
    """Run ``qalter -a TIME JOB...`` and return its exit code."""
    option, text, *jobs = words
    digits = text.replace(".", "")
    if option != "-a" or not (digits.isdecimal() and len(digits) == 14 and text[12] == "."):
        print("qalter: illegal -a value", file=sys.stderr)
        return 2
    begin_s = int(time.mktime(time.strptime(text, "%Y%m%d%H%M.%S")))
    refused = 0
    for job in jobs:
        ad = state["jobs"].get(job)
        if ad is None or ad["job_state"] == "F":
            refused, why = 153, "Unknown Job Id"
        elif not state["may_alter"]:
            refused, why = 159, "Unauthorized Request "
        else:
            ad |= {"Execution_Time": begin_s, "mtime": now_s}
            if ad["job_state"] in ("Q", "W") and begin_s > now_s:
                ad["job_state"] = "W"
                ad.pop("etime", None)
            continue
        print(f"qalter: {why} {job}", file=sys.stderr)
    _let_begin(state, now_s)
    _write(state_file, state)
    return refused


def _version(is_torque: bool) -> Any:
    return sys.stderr if is_torque else sys.stdout


def _openpbs_jobs(state: dict[str, Any], words: list[str]) -> int:
    asked = [word for word in words if word.endswith(SERVER)]
    if "-x" in words and not state["history"]:
        print("qstat: PBS is not configured to maintain job history", file=sys.stderr)
        return 2
    shown = {
        job: ad for job, ad in state["jobs"].items()
        if (job in asked if asked else ad["job_state"] != "F")
    }  # fmt: skip
    missing = [job for job in asked if job not in shown]
    for job in missing:
        print(f"qstat: Unknown Job Id {job}", file=sys.stderr)
    lines = ["{", '    "timestamp":1795231020,', f'    "pbs_server":"{SERVER}"']
    if shown:
        lines[-1] += ","
        lines.append('    "Jobs":{')
        blocks = [_job_lines(job, ad, state["broken"]) for job, ad in shown.items()]
        for n, block in enumerate(blocks):
            lines += [*block[:-1], block[-1] + ("," if n < len(blocks) - 1 else "")]
        lines.append("    }")
    print("\n".join([*lines, "}"]))
    return 153 if missing else 0


def _job_lines(job: str, ad: dict[str, Any], broken: bool) -> list[str]:
    """Format a job like qstat: one member per line, times as text."""
    members: list[str] = []
    lists: dict[str, list[str]] = {}
    for name, value in ad.items():
        if name == "Variable_List":
            parts = [part.partition("=") for part in value.split(",")]
            quoted = [f'"{k}":"{v}"' if broken else f"{json.dumps(k)}:{json.dumps(v)}"
                      for k, _, v in parts]  # fmt: skip
            lists["Variable_List"] = quoted
        elif "." in name:
            outer, _, inner = name.partition(".")
            lists.setdefault(outer, []).append(f"{json.dumps(inner)}:{_value(inner, value)}")
        else:
            members.append(f"{json.dumps(name)}:{_value(name, value)}")
    for name, parts in lists.items():
        members.append(f"{json.dumps(name)}:{{\n{_indented(parts, 16)}\n            }}")
    return f'        "{job}":{{\n{_indented(members, 12)}\n        }}'.split("\n")


def _indented(members: list[str], by: int) -> str:
    return ",\n".join(" " * by + member for member in members)


_TIMES: Final = frozenset(
    {"ctime", "qtime", "etime", "mtime", "stime", "obittime", "Execution_Time"}
)


def _value(name: str, value: Any) -> str:
    if name in _TIMES and isinstance(value, int):
        return json.dumps(time.ctime(value))
    return str(value) if isinstance(value, int) else json.dumps(value)


def _openpbs_nodes(state: dict[str, Any]) -> str:
    nodes = {
        name: {
            "Mom": f"{name}.cluster", "ntype": "PBS", "state": node["state"],
            "pcpus": node["ncpus"], "jobs": ["1.pbs.test/0"],
            "resources_available": {
                "arch": "linux", "host": name, "mem": "16384000kb", "ncpus": node["ncpus"],
                "vnode": name,
            },
            "resources_assigned": {"ncpus": 0},
        }
        for name, node in state["nodes"].items()
    }  # fmt: skip
    return json.dumps({"timestamp": 1795231020, "pbs_server": SERVER, "nodes": nodes}, indent=4)


def _torque_jobs(state: dict[str, Any]) -> str:
    jobs = []
    for job, ad in state["jobs"].items():
        inner: dict[str, str] = {}
        for name, value in ad.items():
            outer, _, part = name.partition(".")
            text = (
                f"<{part}>{html.escape(str(value), quote=False)}</{part}>"
                if part
                else html.escape(str(value), quote=False)
            )
            inner[outer] = inner.get(outer, "") + text
        parts = "".join(f"<{name}>{text}</{name}>" for name, text in inner.items())
        jobs.append(f"<Job><Job_Id>{job}</Job_Id>{parts}</Job>")
    return f"<Data>{''.join(jobs)}</Data>" if jobs else ""


def _torque_nodes(state: dict[str, Any]) -> str:
    nodes = "".join(
        f"<Node><name>{name}</name><state>{node['state']}</state><power_state>Running</power_state>"
        f"<np>{node['ncpus']}</np><ntype>cluster</ntype><status>opsys=linux,"
        f"physmem=16384000kb,ncpus={node['ncpus']}</status><gpus>0</gpus></Node>"
        for name, node in state["nodes"].items()
    )
    return f"<Data>{nodes}</Data>"

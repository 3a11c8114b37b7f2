"""Real Prometheus for a test: it scrapes one address each second and answers PromQL."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fixtures.patience import patient
from tests.free_port import free_port
from tests.peers.processes import end

CONFIG = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
scrape_configs:
  - job_name: outrider
    metrics_path: {path}
    static_configs:
      - targets: ["{target}"]
"""
RULES = """\
rule_files: {rules}
alerting:
  alertmanagers:
    - static_configs:
        - targets: ["{alertmanager}"]
"""
READY_WITHIN_S = patient(30.0)
COMES_WITHIN_S = patient(15.0)


class Server:
    """Running program of Prometheus' family on the loopback address.

    Ended by `stop` or a ``with`` block.

    Args:
        program: the executable.
        run_dir: folder for its configuration, data and log.
        before: words before the call of the program, which become it in the end.
    """

    def __init__(self, program: Path, run_dir: Path, *, before: Iterable[str] = ()) -> None:
        self.run_dir = run_dir
        self.log = run_dir / f"{program.name}.log"
        self.url = ""
        self._program = program
        self._before = tuple(before)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def arguments(self, address: str) -> list[str]:
        """Write its files and return its arguments, to serve at this host and port."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it and return when it answers.

        Raises:
            RuntimeError: It ended or did not answer in time; the message holds its log's end.
        """
        self.run_dir.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        call = [str(self._program), *self.arguments(address), "--log.level=warn"]
        command = [*self._before, *call]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline_s = time.monotonic() + READY_WITHIN_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.stop()
                output = self.log.read_text()[-1500:]
                raise RuntimeError(f"{self._program.name} did not start: {output}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop this process and no other."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as not_yet:  # 503 while it replays its write-ahead log
            not_yet.close()
            return False
        except urllib.error.URLError:
            return False


class Prometheus(Server):
    """Prometheus that scrapes one target and, if configured so, raises alerts."""

    def __init__(
        self,
        program: Path,
        run_dir: Path,
        target: str,
        path: str = "/metrics",
        *,
        rules: Iterable[Path] = (),
        alertmanager: str = "",
    ) -> None:
        """Prepare, start nothing yet.

        Args:
            program: The prometheus executable.
            run_dir: Folder for its configuration, data and log.
            target: What it scrapes, as "host:port".
            path: Where the target serves its metrics.
            rules: Files of alerting rules, which it evaluates each second.
            alertmanager: Where it sends the alerts of these rules, as "host:port".
        """
        super().__init__(program, run_dir)
        self._config = CONFIG.format(target=target, path=path)
        files = [str(file) for file in rules]
        if files:
            self._config += RULES.format(rules=json.dumps(files), alertmanager=alertmanager)

    def arguments(self, address: str) -> list[str]:
        """Write the configuration; return the arguments of Prometheus."""
        config = self.run_dir / "prometheus.yml"
        config.write_text(self._config)
        return [
            f"--config.file={config}",
            f"--storage.tsdb.path={self.run_dir / 'data'}",
            f"--web.listen-address={address}",
        ]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Query an instant vector or scalar now; return (labels, value) of each series.

        Raises:
            ValueError: Prometheus refused the expression; the message is its own.
        """
        data = self._get("query", query=expression)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def query_range(
        self, expression: str, start_s: float, end_s: float, step_s: float
    ) -> list[tuple[dict[str, str], list[float]]]:
        """Query a matrix, as a chart does; return (labels, values) of each series.

        Raises:
            ValueError: Prometheus refused the expression; the message is its own.
        """
        span = {"start": str(start_s), "end": str(end_s), "step": str(step_s)}
        data = self._get("query_range", query=expression, **span)
        return [
            (row["metric"], [float(value) for _, value in row["values"]]) for row in data["result"]
        ]

    def label_values(self, metric: str, label: str) -> list[str]:
        """Return the values that a label of a metric has."""
        values: list[str] = self._ask(f"label/{label}/values", **{"match[]": metric})
        return values

    def wait_for(
        self, expression: str, within_s: float = COMES_WITHIN_S
    ) -> list[tuple[dict[str, str], float]]:
        """Repeat a query until it returns at least one series; return the series.

        Comparisons filter in PromQL, so `up == 1` waits for a first good scrape.

        Raises:
            TimeoutError: Nothing came in time; the message says what the target's state is.
        """
        deadline_s = time.monotonic() + within_s
        while not (found := self.query(expression)):
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"{expression!r} gave nothing within {within_s:g} s; target: {self.target()}"
                )
            time.sleep(0.2)
        return found

    def target(self) -> dict[str, Any]:
        """Return Prometheus's data on its one target: `health`, `lastError` and more."""
        targets: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return targets[0] if targets else {}

    def _get(self, call: str, **parameters: str) -> dict[str, Any]:
        data: dict[str, Any] = self._ask(call, **parameters)
        return data

    def _ask(self, call: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{call}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            with refused:
                raise ValueError(f"{call} {parameters}: {refused.read().decode()}") from refused

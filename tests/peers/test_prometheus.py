"""Tests of Prometheus itself: it scrapes a test's metrics and answers queries."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.peers.prometheus import Prometheus

pytestmark = pytest.mark.prometheus

METRICS = b"""\
# TYPE rides gauge
rides{horse="grey"} 3
rides{horse="bay"} 4
"""


class TinyExporter(BaseHTTPRequestHandler):
    """Exporter that serves two series to every client."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(METRICS)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own name)
        """Log nothing: the test's output is the report."""


@pytest.fixture
def exporter() -> Iterator[str]:
    """Provide the address of a running exporter, as "host:port"."""
    with HTTPServer(("127.0.0.1", 0), TinyExporter) as server:
        thread = threading.Thread(target=server.serve_forever, name="tiny-exporter")
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_it_scrapes_the_target_and_answers_promql(
    exporter: str, prometheus_program: Path, tmp_path: Path
) -> None:
    with Prometheus(prometheus_program, tmp_path, exporter) as prometheus:
        prometheus.wait_for('up{job="outrider"} == 1')
        horses = {labels["horse"]: rides for labels, rides in prometheus.query("rides")}
        assert horses == {"grey": 3.0, "bay": 4.0}
        assert prometheus.query("scalar(sum(rides))") == [({}, 7.0)]
        assert prometheus.target()["health"] == "up"


def test_a_wrong_expression_is_refused_with_prometheus_own_words(
    exporter: str, prometheus_program: Path, tmp_path: Path
) -> None:
    with (
        Prometheus(prometheus_program, tmp_path, exporter) as prometheus,
        pytest.raises(ValueError, match="parse error"),
    ):
        prometheus.query("rides{")


def test_a_target_that_is_away_is_seen_as_down(prometheus_program: Path, tmp_path: Path) -> None:
    with Prometheus(prometheus_program, tmp_path, "127.0.0.1:1") as prometheus:
        prometheus.wait_for('up{job="outrider"} == 0')
        assert "connection refused" in prometheus.target()["lastError"]

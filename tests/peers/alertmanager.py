"""A real Alertmanager for a test, and the webhook at which its notifications arrive."""

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.peers.prometheus import Server

CONFIG = """\
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {url}
        send_resolved: true
"""


class Alertmanager(Server):
    """An Alertmanager that passes every alert on to a webhook of the test's own.

    Args:
        program: the prometheus-alertmanager executable.
        run_dir: folder for its configuration, data and log.
    """

    def __init__(self, program: Path, run_dir: Path) -> None:
        super().__init__(program, run_dir)
        self.arrived: list[dict[str, Any]] = []
        self._hook = ThreadingHTTPServer(("127.0.0.1", 0), _webhook(self.arrived))
        self._thread = threading.Thread(target=self._hook.serve_forever, name="webhook")

    @property
    def address(self) -> str:
        """Where Prometheus reaches it, as "host:port"."""
        return self.url.removeprefix("http://")

    def arguments(self, address: str) -> list[str]:
        """Write the configuration; return how Alertmanager is called."""
        config = self.run_dir / "alertmanager.yml"
        config.write_text(CONFIG.format(url=f"http://127.0.0.1:{self._hook.server_port}/"))
        return [
            f"--config.file={config}",
            f"--storage.path={self.run_dir / 'data'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        ]

    def start(self) -> None:
        """Open the webhook, start Alertmanager and return when it answers."""
        self._thread.start()
        try:
            super().start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it, this process and no other, and close the webhook."""
        super().stop()
        if self._thread.is_alive():
            self._hook.shutdown()
            self._thread.join()
        self._hook.server_close()

    def wait_for(
        self, labels: Mapping[str, str], status: str = "firing", within_s: float = 30.0
    ) -> dict[str, Any]:
        """Wait until an alert with these labels has arrived in this status; return it.

        Raises:
            TimeoutError: none came in time; the message shows those that did.
        """
        deadline_s = time.monotonic() + within_s
        while True:
            for alert in list(self.arrived):
                if alert["status"] == status and labels.items() <= alert["labels"].items():
                    return alert
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"no {status} {dict(labels)} within {within_s:g} s; arrived: {self.arrived}"
                )
            time.sleep(0.1)


def _webhook(arrived: list[dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Webhook(BaseHTTPRequestHandler):
        """Keeps the alerts of every notification, in the order of their arrival."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.extend(json.loads(body)["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own)
            """Say nothing: the test's output is the report."""

    return Webhook

"""Real Alertmanager for a test, and the webhook at which its notifications arrive.

Debian's Alertmanager reads its default templates from a path below /usr/share that is compiled in,
and does not start without them. One that `make peers` only unpacked is therefore started in a mount
namespace of its own, in which /usr/share is that of the unpacked package: nothing on this machine
changes, and nobody has to be root where the kernel lets users have namespaces.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fixtures.patience import patient
from tests.peers.presence import require_peer, require_program
from tests.peers.prometheus import Server

NAME = "Alertmanager"
COMES_WITHIN_S = patient(30.0)
SHARE = Path("/usr/share")
TEMPLATE = "prometheus/alertmanager/default.tmpl"
"""Path of the default template in Debian's Alertmanager, below `SHARE`."""
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


def require_alertmanager() -> Path:
    """Return the program if it can run here; otherwise end the test as `require_peer` does."""
    program = require_program("prometheus-alertmanager", NAME)
    namespace = seeing_its_templates(program)
    if namespace:
        done = subprocess.run([*namespace, "true"], capture_output=True, text=True, check=False)
        why = done.stderr.strip()
        require_peer(NAME, f"a mount namespace cannot be had: {why}" if done.returncode else None)
    return program


def seeing_its_templates(program: Path) -> list[str]:
    """Return the words before a command that let it see the program's own /usr/share.

    Empty where the program belongs to this machine's own /usr, or brings no templates.
    """
    share = program.parents[1] / "share"
    if share == SHARE or not (share / TEMPLATE).is_file():
        return []
    as_user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    mounted = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return ["unshare", "--mount", *as_user, "--", "sh", "-c", mounted, str(share), str(SHARE)]


class Alertmanager(Server):
    """Alertmanager that passes every alert on to the test's webhook.

    Args:
        program: the prometheus-alertmanager executable, as `require_alertmanager` gave it.
        run_dir: folder for its configuration, data and log.
        config: its configuration, with ``{url}`` where the webhook's address belongs.
    """

    def __init__(self, program: Path, run_dir: Path, config: str = CONFIG) -> None:
        super().__init__(program, run_dir, before=seeing_its_templates(program))
        self._text = config
        self.posted: list[dict[str, Any]] = []
        """Notifications at the webhook, in the order of arrival."""
        self._hook = ThreadingHTTPServer(("127.0.0.1", 0), _webhook(self.posted))
        self._thread = threading.Thread(target=self._hook.serve_forever, name="webhook")

    @property
    def arrived(self) -> list[dict[str, Any]]:
        """Return the alerts of every notification so far."""
        return [alert for body in list(self.posted) for alert in body["alerts"]]

    @property
    def address(self) -> str:
        """Return the address for Prometheus, as "host:port"."""
        return self.url.removeprefix("http://")

    def arguments(self, address: str) -> list[str]:
        """Write the configuration; return the arguments of Alertmanager."""
        config = self.run_dir / "alertmanager.yml"
        config.write_text(self._text.format(url=f"http://127.0.0.1:{self._hook.server_port}/"))
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
        """Stop the program and close the webhook."""
        super().stop()
        if self._thread.is_alive():
            self._hook.shutdown()
            self._thread.join()
        self._hook.server_close()

    def wait_for_post(self, within_s: float) -> dict[str, Any]:
        """Wait until the webhook got its first notification; return its body.

        Raises:
            TimeoutError: none came in time.
        """
        deadline_s = time.monotonic() + within_s
        while not self.posted:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"no notification within {within_s:g} s: {self.log.read_text()}")
            time.sleep(0.1)
        return self.posted[0]

    def wait_for(
        self, labels: Mapping[str, str], status: str = "firing", within_s: float = COMES_WITHIN_S
    ) -> dict[str, Any]:
        """Wait until an alert with these labels has arrived in this status; return it.

        Raises:
            TimeoutError: none came in time; the message shows those that did.
        """
        deadline_s = time.monotonic() + within_s
        while True:
            for alert in self.arrived:
                if alert["status"] == status and labels.items() <= alert["labels"].items():
                    return alert
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"no {status} {dict(labels)} within {within_s:g} s; arrived: {self.arrived}"
                )
            time.sleep(0.1)


def _webhook(posted: list[dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Webhook(BaseHTTPRequestHandler):
        """Recorder of the bodies of notifications, in the order of arrival."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own)
            """Log nothing: the test's output is the report."""

    return Webhook

"""Real Mosquitto for a test: passwords, ACL, TLS with a test authority, kill -9."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.fixtures.patience import patient
from tests.free_port import free_port
from tests.peers.presence import program_path, require_program
from tests.peers.processes import end

USERS: Final[Mapping[str, str]] = {"outrider": "0utr1der", "machine": "s3cret", "reader": "r3ader"}
"""Passwords by user: `outrider` may do everything below its topics, `machine` only publish what
comes in, `reader` only read what goes out."""

ACL = """\
user outrider
topic readwrite outrider/#
topic read tele/#
topic read shellies/#

user machine
topic write outrider/in/#
topic write tele/#
topic write shellies/#

user reader
topic read outrider/#
"""
CONFIG = """\
per_listener_settings false
allow_anonymous false
password_file {run_dir}/passwords
acl_file {run_dir}/acl
persistence true
persistence_location {run_dir}/data/
{saving}
max_inflight_messages 1000
max_queued_messages 100000
log_dest file {run_dir}/mosquitto.log
listener {port} 127.0.0.1
listener {tls_port} 127.0.0.1
cafile {run_dir}/ca.crt
certfile {run_dir}/server.crt
keyfile {run_dir}/server.key
"""
SAVES_EACH_CHANGE = "autosave_on_changes true\nautosave_interval 1"
SAVES_AT_END = "autosave_interval 0"
NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
SYSTEM_PROGRAM = Path("/usr/sbin/mosquitto")
ANSWERS_WITHIN_S = patient(10.0)
_TAKEN = "Address already in use"
_RUNS = " running\n"
"""Pattern in the broker's log that shows that it listens at each of its ports."""
_TRIES = 5


class Mosquitto:
    """Running broker on the loopback address, ended by `stop` or a `with` block.

    Attributes:
        port: Plain TCP.
        tls_port: TLS; the certificate is for `localhost` and 127.0.0.1.
        ca_file: The authority that signed it.
    """

    def __init__(
        self,
        program: Path,
        run_dir: Path,
        saves_each_change: bool = True,
        users: Mapping[str, str] = USERS,
        acl: str = ACL,
    ) -> None:
        """Create passwords and certificates, start nothing yet.

        Args:
            program: The mosquitto executable.
            run_dir: A new folder for its configuration, data and log.
            saves_each_change: Write all it holds after every message; otherwise when it ends.
            users: Passwords by user.
            acl: What they may do, as Mosquitto's `acl_file`.
        """
        self.run_dir = run_dir
        self.log = run_dir / "mosquitto.log"
        self.ca_file = run_dir / "ca.crt"
        self._saving = SAVES_EACH_CHANGE if saves_each_change else SAVES_AT_END
        self._has_answered = False
        self._program = program
        self._users = users
        self._process: subprocess.Popen[bytes] | None = None
        (run_dir / "data").mkdir(parents=True)
        self._write_passwords()
        self._write_certificates()
        (run_dir / "acl").write_text(acl)
        (run_dir / "acl").chmod(0o600)
        self._config = run_dir / "mosquitto.conf"
        self._take_ports()

    def _take_ports(self) -> None:
        """Write the configuration, with two ports that are free now."""
        self.port = free_port()
        self.tls_port = free_port()
        config = CONFIG.format(
            run_dir=self.run_dir, port=self.port, tls_port=self.tls_port, saving=self._saving
        )
        if os.geteuid() == 0:
            config += "user root\n"  # it would become `mosquitto`, who may not read this folder
        self._config.write_text(config)

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

    @property
    def pid(self) -> int:
        """Return the broker's process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    def password_file(self, user: str) -> Path:
        """Return a file with the user's password, as settings need it."""
        path = self.run_dir / f"{user}.password"
        path.write_text(self._users[user] + "\n")
        path.chmod(0o600)
        return path

    def start(self) -> None:
        """Start it, again with what it saved, and return when it answers.

        Raises:
            RuntimeError: It ended or did not answer in time; the message holds its log's end.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                self._start()
            except RuntimeError as error:
                if not tries_left or _TAKEN not in str(error):
                    raise
                # a port that was free a moment ago is somebody's, of another test perhaps
                if self._has_answered:
                    time.sleep(0.5)  # clients know the port: wait until it is free again
                else:
                    self._take_ports()
            else:
                self._has_answered = True
                return

    def _start(self) -> None:
        starts_before = self._starts()
        self._process = subprocess.Popen(
            [str(self._program), "-c", str(self._config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline_s = time.monotonic() + ANSWERS_WITHIN_S
        # who answers at the port may be another test's, until this broker says that it is his
        while self._starts() == starts_before or not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.stop()
                output = self.log.read_text()[-1500:] if self.log.exists() else "no log"
                raise RuntimeError(f"Mosquitto did not start: {output}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the broker (-9): it saves nothing more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """Stop this process and no other."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def _starts(self) -> int:
        return self.log.read_text().count(_RUNS) if self.log.exists() else 0

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def _write_passwords(self) -> None:
        path = self.run_dir / "passwords"
        path.write_text("".join(f"{user}:{word}\n" for user, word in self._users.items()))
        path.chmod(0o600)
        hasher = program_path("mosquitto_passwd") or "mosquitto_passwd"
        _run(str(hasher), "-U", str(path))

    def _write_certificates(self) -> None:
        folder = self.run_dir
        (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _run(
            "openssl", "req", "-x509", *NEW_KEY, "-days", "2", "-subj", "/CN=test authority",
            "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.crt",
        )  # fmt: skip
        _run(
            "openssl", "req", *NEW_KEY, "-subj", "/CN=localhost",
            "-keyout", f"{folder}/server.key", "-out", f"{folder}/server.csr",
        )  # fmt: skip
        _run(
            "openssl", "x509", "-req", "-days", "2", "-in", f"{folder}/server.csr",
            "-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key", "-CAcreateserial",
            "-extfile", f"{folder}/san", "-out", f"{folder}/server.crt",
        )  # fmt: skip


def require_mosquitto() -> Path:
    """Return the broker's executable, or end the test (see `require_peer`)."""
    require_program("mosquitto_passwd", "Mosquitto")
    if shutil.which("openssl") is None:
        require_program("openssl", "openssl for Mosquitto's certificates")
    if SYSTEM_PROGRAM.exists():  # not on the path of everybody
        return SYSTEM_PROGRAM
    return require_program("mosquitto", "Mosquitto")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-500:]}")

"""The container file: what it copies is there, and what a real build of it does."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.conftest import RootOf
from tools.lock import LOCKS


class Instruction(NamedTuple):
    """One of the container file's."""

    word: str
    rest: str


@pytest.fixture
def instructions(repository: Path) -> list[Instruction]:
    """The instructions of the Containerfile."""
    text = (repository / "packaging/Containerfile").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^#.*\n", "", text).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_it_runs_the_daemon_as_nobody_special_with_its_state_on_a_volume(
    instructions: list[Instruction],
) -> None:
    last = {one.word: one.rest for one in instructions}
    assert last["USER"] == "outrider"
    assert last["VOLUME"] == "/var/lib/outrider"
    assert last["ENTRYPOINT"] == '["outrider"]'
    assert last["CMD"] == '["run", "--config", "/etc/outrider/outrider.toml"]'
    assert "ready.py" in last["HEALTHCHECK"]


def test_what_it_copies_is_in_the_context(
    repository: Path, instructions: list[Instruction]
) -> None:
    """Check that the build context contains everything the wheel is built from."""
    let_in = (repository / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for one in instructions:
        if one.word == "COPY" and not one.rest.startswith("--from"):
            source = one.rest.split()[0]
            assert (repository / source).exists(), source
            assert source == "." or f"!{source.partition('/')[0]}" in let_in
    for needed in ("daemon", "adapters", "policies", "lab", "systemd", "dashboards", "locks"):
        assert f"!{needed}" in let_in
    assert {"!pyproject.toml", "!README.md", "!LICENSE"} <= {*let_in}


@pytest.fixture
def daemon() -> Iterator[HTTPServer]:
    """Server that answers /readyz with a given status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(self.server.status if self.path == "/readyz" else 404)  # type: ignore[attr-defined]
            self.end_headers()
            self.wfile.write(b'{"ready": false, "reasons": ["it starts"]}')

        def log_message(self, *_: object) -> None:
            """Write no access log."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_health_check_is_well_while_the_daemon_is_ready(
    daemon: HTTPServer, repository: Path, tmp_path: Path
) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(f'listen = "127.0.0.1:{daemon.server_port}"\n[adapters.slurm]\n')

    def check() -> tuple[int, str]:
        words = [sys.executable, str(repository / "packaging/ready.py"), str(config)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
        return done.returncode, done.stdout

    daemon.status = 200  # type: ignore[attr-defined]
    assert check()[0] == 0
    daemon.status = 503  # type: ignore[attr-defined]
    code, said = check()
    assert code == 1
    assert "it starts" in said
    config.write_text('listen = "127.0.0.1:9"\n[adapters.slurm]\n')
    assert check()[0] == 1


RUN_BY_PODMAN = """
mkdir -p /etc/containers /var/tmp /var/log/condor
mount -t sysfs sysfs /sys
mount -t cgroup2 none /sys/fs/cgroup
echo '{"default": [{"type": "insecureAcceptAnything"}]}' > /etc/containers/policy.json
printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n' \\
    > /etc/containers/containers.conf
export STORAGE_DRIVER=vfs
podman import --quiet --change 'ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin' \\
    --change 'ENV PIP_NO_INDEX=1' --change 'ENV PIP_FIND_LINKS=/wheels' \\
    /media/base.tar localhost/base
cd /media/clone
podman build --quiet --isolation chroot --format docker --network host --pull=never \\
    --build-arg BASE=localhost/base --volume /media/wheels:/wheels:ro \\
    -f packaging/Containerfile -t outrider .

with="--network host --cgroups disabled"
podman run --rm $with outrider --version
podman run --rm $with --entrypoint sh outrider -c 'id -un; stat -c %U:%a /var/lib/outrider'
podman run --rm $with outrider check-config /etc/outrider/outrider.toml

becomes() {
    tried=0
    until "$@"; do
        tried=$((tried + 1))
        [ $tried -lt 60 ] || { podman logs pool; exit 1; }
        sleep 1
    done
}
podman run --detach --name pool $with --volume /var/log/condor:/var/log/condor:ro \\
    --volume state:/var/lib/outrider outrider
becomes sh -c 'podman logs pool 2>&1 | grep -q adapter_down'
! podman healthcheck run pool
podman inspect pool | grep -o "[^\\"]*EventLog is not there" | head -1
touch /var/log/condor/EventLog
becomes podman healthcheck run pool
podman inspect --format 'it is {{.State.Health.Status}}' pool
podman exec pool outrider status
podman stop --time 20 pool
podman inspect --format 'ended with {{.State.ExitCode}}' pool
podman run --rm $with --volume state:/var/lib/outrider --entrypoint ls outrider /var/lib/outrider
"""


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_it_is_built_and_runs(root_of: RootOf, wheels: Path, repository: Path) -> None:
    """Build with podman on a base made by mmdebstrap, without a registry.

    The base has Python already, and pip finds packages in a folder: the build has no network.
    Where systemd does not run, nobody asks for the health from time to time: it is asked here.
    """
    root = root_of("podman")
    root.takes(root_of.archive("python3", "python3-venv"), "/media/base.tar")
    root.takes(wheels, "/media/wheels")
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary"]
    fetch += [":all:", "--require-hashes", "--requirement", str(LOCKS / "checkout.txt")]
    subprocess.run([*fetch, "--dest", str(root.folder / "media/wheels")], check=True)
    clone = ["git", "clone", "--quiet", str(repository), str(root.folder / "media/clone")]
    subprocess.run(clone, check=True)
    said = root.runs(RUN_BY_PODMAN, within_s=2400)
    assert "\noutrider 0." in said
    assert "\noutrider\noutrider:700\n" in said
    assert "\nunhealthy\nadapter logtail is down: /var/log/condor/EventLog is not there\n" in said
    assert "\nit is healthy\n" in said
    assert "\nadapter    logtail (logtail) is up" in said
    assert "\nended with 0\n" in said
    assert "\njournal.sqlite\n" in said.partition("ended with 0")[2]

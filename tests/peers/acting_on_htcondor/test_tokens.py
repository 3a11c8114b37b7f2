"""A token as systemd hands it to a service (`LoadCredential=` of a folder) is as good as any."""

from pathlib import Path

import pytest

from tests.cli.running import shell
from tests.peers.acting_on_htcondor.acting_pool import (
    SLEEP,
    acting_daemon,
    after_a_cycle,
    leased,
)
from tests.peers.pool import HTCondorPool

pytestmark = pytest.mark.htcondor


def test_a_token_beside_other_credentials_may_edit_jobs(pool: HTCondorPool, tmp_path: Path) -> None:
    daemon = acting_daemon(pool, tmp_path)
    client = Path(daemon.environ["CONDOR_CONFIG"])
    [line] = [one for one in client.read_text().splitlines() if "TOKEN_DIRECTORY" in one]
    tokens = Path(line.partition("= ")[2])
    client.write_text(client.read_text().replace(f"{line}\n", ""))
    handed_over = tmp_path / "credentials"
    handed_over.mkdir(mode=0o500)
    for name, text in {
        "tokens-0_token": (tokens / "token").read_text(), "mqtt-password": "no token\n",
    }.items():  # fmt: skip
        (handed_over / name).write_text(text)
        (handed_over / name).chmod(0o400)
    daemon.environ["_CONDOR_SEC_TOKEN_DIRECTORY"] = str(handed_over)
    with daemon:
        daemon.wait_until("machines", lambda s: sum(c["machines"] for c in s["clusters"]) == 4)
        after_a_cycle(pool)
        pool.submit(f"{SLEEP}queue\n", "alice")
        leased(pool, 1)
        assert daemon.status()["levers"][0]["changes"]["refused"] == 0
        assert daemon.stop() == 0
    needs = shell(
        "install-service", "--config", str(daemon.config), "--dry-run", "--json",
        **(daemon.environ | {"_CONDOR_SEC_TOKEN_DIRECTORY": str(tokens)}),
    ).json()  # fmt: skip
    secrets = needs["texts"]["/etc/systemd/system/outrider.service.d/50-secrets.conf"]
    assert (
        f"LoadCredential=tokens-0:{tokens}\nEnvironment=_CONDOR_SEC_TOKEN_DIRECTORY=%d" in secrets
    )

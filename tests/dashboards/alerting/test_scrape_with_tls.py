"""The shipped scrape configuration for TLS and a token, used by a real Prometheus."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from outrider.service.web import serve
from tests.cli.test_secret_files import write_certificate
from tests.peers.presence import require_program
from tests.peers.prometheus import Prometheus
from tests.service.web.small_site import SmallSite

pytestmark = pytest.mark.prometheus
TOKEN = "0123456789abcdef0123456789abcdef"


class ExamplePrometheus(Prometheus):
    """Start a Prometheus with the shipped example, its files and its target filled in."""

    def __init__(self, program: Path, run_dir: Path, example: dict[str, Any]) -> None:
        super().__init__(program, run_dir, "")
        scrape = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        self._config = yaml.safe_dump({"global": scrape, **example})


@pytest.mark.parametrize(
    ("token", "health"), [(TOKEN, "up"), ("another-token-of-that-length", "down")]
)
async def test_prometheus_scrapes_over_tls_with_the_token_of_its_file(
    token: str, health: str, repository: Path, tmp_path: Path
) -> None:
    program = require_program("prometheus", "Prometheus")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    write_certificate(cert, key, 10)
    (tmp_path / "token").write_text(token)
    example = yaml.safe_load(
        (repository / "dashboards/prometheus/scrape-tls.example.yml").read_text()
    )
    (job,) = example["scrape_configs"]
    del example["rule_files"], job["scrape_interval"]
    job["authorization"]["credentials_file"] = str(tmp_path / "token")
    job["tls_config"] |= {"ca_file": str(cert), "server_name": "outrider.example.org"}

    async with serve(SmallSite().app(TOKEN), "127.0.0.1", 0, cert, key) as port:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]

        def scraped() -> dict[str, Any]:
            with ExamplePrometheus(program, tmp_path / "run", example) as prometheus:
                prometheus.wait_for(f'up{{job="outrider"}} == {int(health == "up")}', 60.0)
                if health == "up":
                    prometheus.wait_for("outrider_mode", 60.0)
                return prometheus.target()

        target = await asyncio.to_thread(scraped)
    assert target["health"] == health
    assert target["scrapeUrl"] == f"https://127.0.0.1:{port}/metrics"
    assert ("401" in target["lastError"]) == (health == "down")

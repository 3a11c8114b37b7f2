"""Tests that an unpacked Alertmanager finds its templates, regardless of /usr/share."""

import json
import shutil
import urllib.request
from pathlib import Path

import pytest

from tests.peers.alertmanager import SHARE, TEMPLATE, Alertmanager, require_alertmanager

pytestmark = pytest.mark.prometheus

ASKING_THE_TEMPLATES = """\
route:
  receiver: chat
  group_wait: 0s
receivers:
  - name: chat
    slack_configs:
      - api_url: {url}
        channel: on-call
"""
"""Title of such a notification: the default template `__subject`."""
SUBJECT = '{{ define "__subject" }}'


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """Unpack a program like `make peers`, with a template that this machine cannot have."""
    program = require_alertmanager()
    if not (program.parents[1] / "share" / TEMPLATE).is_file():
        pytest.skip(f"{program} brings its templates inside")
    package = tmp_path / "unpacked" / "usr"
    shutil.copytree(program.parents[1] / "share/prometheus", package / "share/prometheus")
    (package / "bin").mkdir()
    shutil.copy2(program, package / "bin" / program.name)
    template = package / "share" / TEMPLATE
    text = template.read_text(encoding="utf-8")
    assert text.count(SUBJECT) == 1
    template.write_text(text.replace(SUBJECT, f"{SUBJECT}unpacked: "), encoding="utf-8")
    return package / "bin" / program.name


def post(alertmanager: Alertmanager, alert: str) -> None:
    body = json.dumps([{"labels": {"alertname": alert}}]).encode()
    url = f"{alertmanager.url}/api/v2/alerts"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()


def test_an_unpacked_alertmanager_reads_its_own_templates(unpacked: Path, tmp_path: Path) -> None:
    there = sorted(SHARE.iterdir())
    with Alertmanager(unpacked, tmp_path / "run", ASKING_THE_TEMPLATES) as alertmanager:
        post(alertmanager, "OutriderDown")
        reported = alertmanager.wait_for_post(within_s=30.0)
    assert reported["attachments"][0]["title"].startswith("unpacked: [FIRING:1]")
    assert sorted(SHARE.iterdir()) == there, "this machine's own /usr/share was changed"


def test_without_its_templates_it_would_not_start(unpacked: Path, tmp_path: Path) -> None:
    """Check the reason for the above; if this fails, the mount namespace can go."""
    if (SHARE / TEMPLATE).is_file():
        pytest.skip("the package is installed on this machine")
    shutil.rmtree(unpacked.parents[1] / "share")
    with (
        pytest.raises(RuntimeError, match=r"default\.tmpl: no such file"),
        Alertmanager(unpacked, tmp_path / "run"),
    ):
        pass

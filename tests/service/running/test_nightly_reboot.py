"""The nightly reboot of the configuration is what policies see of it."""

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core

ZONE = ZoneInfo("Europe/Berlin")


def core(folder: Path, **settings: str) -> Core:
    """The heart of a daemon in Berlin."""
    given = {"timezone": "Europe/Berlin", "adapters": {"logtail": {"paths": ["EventLog"]}}}
    return Core(check_config(given | settings, str(folder)), [])


@pytest.mark.parametrize(
    ("now", "reboot"),
    [
        ("2026-11-21 22:15:00", "2026-11-22 03:00:00"),
        ("2026-11-22 02:59:59", "2026-11-22 03:00:00"),
        ("2026-11-22 03:00:00", "2026-11-23 03:00:00"),
    ],
)
def test_it_comes_at_its_local_time(now: str, reboot: str, tmp_path: Path) -> None:
    site = core(tmp_path, reboot="03:00").site
    site.now = dt.datetime.fromisoformat(now).replace(tzinfo=ZONE).timestamp()
    reboot_at = dt.datetime.fromtimestamp(site.next_reboot_s(), ZONE)
    assert reboot_at == dt.datetime.fromisoformat(reboot).replace(tzinfo=ZONE)


def test_a_site_that_names_none_has_none(tmp_path: Path) -> None:
    assert core(tmp_path).site.next_reboot_s() == float("inf")


@pytest.mark.parametrize("text", ["3 am", "25:00", "03:60", ""])
def test_what_is_no_time_of_day_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r'"reboot" = .*expected .* as in reboot = "03:00"'
    ):
        core(tmp_path, reboot=text)

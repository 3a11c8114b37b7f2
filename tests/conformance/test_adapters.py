"""Conformance tests of every adapter that ships with Outrider."""

import asyncio
import datetime as dt
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import pytest
from paho.mqtt.publish import single

from outrider.api import Adapter, build, connected
from outrider.formats.campus.files import write_campus
from outrider.plugins.finding import POLICIES, find
from outrider.testing import AdapterConformance, AdapterHarness
from outrider.testing.adapters import read_batches
from outrider.testing.campuses import tiny_campus
from outrider_adapters.logtail import LogtailAdapter, LogtailSettings
from outrider_adapters.mqtt import MqttAdapter, MqttSettings
from outrider_adapters.simulated import SimulatedAdapter, SimulatedSettings
from tests.peers.mosquitto import USERS, Mosquitto, require_mosquitto

FIRST = dt.datetime(2026, 11, 21, 10, 0, 0, tzinfo=dt.UTC)
JOB_EVENTS = (
    "000 ({job}.000.000) {at} Job submitted from host: <10.0.0.1:9618?alias=head>\n...\n",
    "001 ({job}.000.000) {at} Job executing on host: <10.0.0.2:9618?alias=lab-7.example>\n...\n",
    "004 ({job}.000.000) {at} Job was evicted.\n\t(0) CPU times\n...\n",
    "001 ({job}.000.000) {at} Job executing on host: <10.0.0.3:9618?alias=lab-8.example>\n...\n",
    "005 ({job}.000.000) {at} Job terminated.\n\t(1) Normal termination (return value 0)\n...\n",
)


class EventLogHarness(AdapterHarness):
    """Folder with an HTCondor event log that grows by a job at a time."""

    polling: ClassVar[bool] = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.log = self.folder / "EventLog"
        self.jobs = 0

    def settings(self) -> dict[str, object]:
        return {
            "paths": (str(self.log),),
            "start_at": "beginning",
            "poll_s": 0.05,
            "settle_s": 0.05,
            "inotify": not self.polling,
        }

    def adapter(self) -> Adapter:
        return LogtailAdapter("log", build(LogtailSettings, self.settings(), "test"))

    def append(self) -> int:
        self.jobs += 1
        with self.log.open("a", encoding="utf-8") as log:
            for number, event in enumerate(JOB_EVENTS):
                at = FIRST + dt.timedelta(minutes=10 * self.jobs, seconds=40 * number)
                log.write(event.format(job=self.jobs, at=f"{at:%Y-%m-%d %H:%M:%S}"))
        return len(JOB_EVENTS)

    def take_away(self) -> None:
        self.log.rename(self.folder / "elsewhere")

    def bring_back(self) -> None:
        (self.folder / "elsewhere").rename(self.log)

    def close(self) -> None:
        shutil.rmtree(self.folder)


class PolledEventLogHarness(EventLogHarness):
    """Folder with an event log, read without inotify."""

    polling = True


class CampusHarness(AdapterHarness):
    """Tiny campus that runs without the test: three days in about two seconds."""

    endless = True

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        write_campus(tiny_campus(), self.folder)

    def adapter(self) -> Adapter:
        settings = SimulatedSettings(campus=str(self.folder), speed=150_000.0, batch_s=0.2)
        return SimulatedAdapter("campus", settings)

    def append(self) -> int:
        return 250

    def close(self) -> None:
        shutil.rmtree(self.folder)


class TestLogtail(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return EventLogHarness()


class TestLogtailPolling(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return PolledEventLogHarness()


@pytest.mark.skipif(
    "random_match" not in find(POLICIES),
    reason="outrider is not installed here, so its incumbent is not found: pip install -e .",
)
class TestSimulated(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return CampusHarness()


class MosquittoHarness(AdapterHarness):
    """Real broker that knows the adapter: it stores messages while the adapter is away."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.broker = Mosquitto(require_mosquitto(), self.folder / "mosquitto")
        self.broker.start()
        self.machines = 0
        asyncio.run(self._be_known())

    async def _be_known(self) -> None:
        made = build(MqttSettings, self.settings(), "test")
        async with connected(made, "lab", clean_session=False) as client:
            await client.subscribe(f"{made.base}/#", qos=1)

    def settings(self) -> dict[str, object]:
        return {
            "host": "127.0.0.1",
            "port": self.broker.port,
            "username": "outrider",
            "password_file": str(self.broker.password_file("outrider")),
        }

    def adapter(self) -> Adapter:
        return MqttAdapter("lab", build(MqttSettings, self.settings(), "test"))

    def append(self) -> int:
        self.machines += 1
        single(
            f"outrider/in/owner/lab-{self.machines}",
            json.dumps({"present": False, "time": time.time()}),
            qos=1,
            hostname="127.0.0.1",
            port=self.broker.port,
            auth={"username": "machine", "password": USERS["machine"]},
        )
        return 2

    def take_away(self) -> None:
        self.broker.kill()

    def bring_back(self) -> None:
        self.broker.start()

    def close(self) -> None:
        self.broker.stop()
        shutil.rmtree(self.folder)


@pytest.mark.mosquitto
class TestMqtt(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return MosquittoHarness()

    def test_it_resumes_from_every_cursor(self) -> None:
        """A broker forgets consumed messages: from any cursor, only new ones come."""

        async def ask(harness: AdapterHarness) -> None:
            assert isinstance(harness, MosquittoHarness)
            expected_n = harness.append() + harness.append()
            reader = await read_batches(harness, None, expected_n, then_s=harness.quiet_within_s)
            for cursor in (None, *(cursor for _, cursor in reader.cursors)):
                expected_n = harness.append()
                again = await read_batches(
                    harness, cursor, expected_n, then_s=harness.quiet_within_s
                )
                machines = [machine for _, _, machine, _ in again.events]
                assert machines == [f"lab-{harness.machines}"] * expected_n, cursor

        self._run(ask)

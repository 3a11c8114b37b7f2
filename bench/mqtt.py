"""Throughput of the mqtt adapter in messages per second, from a real Mosquitto at QoS 1.

    python bench/mqtt.py [--messages 30000] [--machines 500] [--rounds 3] [--small] [--json]

A publisher in a separate process sends power readings and log-ins in turn as fast as the broker
acknowledges them. The adapter runs here and acknowledges each message after taking it. There are
two figures: `live`, while the publisher sends (both and the broker share the machine), and
`backlog`, when the adapter reconnects to a queue at the broker. Budget: 3,000 per second live.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from calibration import calibration_s
from options import parsed

from outrider.api import build
from outrider_adapters.mqtt import MqttAdapter, MqttSettings
from tests.peers.mosquitto import USERS, Mosquitto
from tests.peers.presence import program_path

BUDGET_PER_S = 3000.0
WITHIN_S = 120.0
PUBLISHER = """\
import sys, time
import paho.mqtt.client as mqtt

port, password, n, machines = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="publisher")
client.username_pw_set("machine", password)
client.max_inflight_messages_set(100)
client.connect("127.0.0.1", port)
client.loop_start()
start_s = time.time()
for i in range(n):
    what, value = ("power", '"watts":63.2') if i % 2 else ("owner", '"present":true')
    sent = client.publish(
        f"outrider/in/{what}/lab-{i // 2 % machines}", f'{{{value},"time":{start_s + i * 1e-5}}}', 1
    )
sent.wait_for_publish(100)
client.disconnect()
"""


def publisher(broker: Mosquitto, messages: int, machines: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", PUBLISHER]
    command += [str(broker.port), USERS["machine"], str(messages), str(machines)]
    return subprocess.Popen(command)


def adapter(broker: Mosquitto) -> MqttAdapter:
    given = {
        "host": "127.0.0.1",
        "port": broker.port,
        "username": "outrider",
        "password_file": str(broker.password_file("outrider")),
    }
    return MqttAdapter("bench", build(MqttSettings, given, "bench"))


async def until_connected(listening: MqttAdapter) -> None:
    """Connect once, so that the broker keeps a session."""
    async with listening:
        batches = listening.batches(None)
        async for batch in batches:
            if batch.seen_until_s is not None:
                break
        await batches.aclose()  # type: ignore[attr-defined]


async def taken_per_s(listening: MqttAdapter, messages: int) -> float:
    """Return messages per second, from the first to the last."""
    taken, began_s = 0, 0.0
    async with asyncio.timeout(WITHIN_S), listening:
        batches = listening.batches(None)
        async for batch in batches:
            if batch.events and not taken:
                began_s = time.perf_counter()
            taken += len(batch.events)
            if batch.rejected or batch.ignored:
                raise RuntimeError(f"rejected {batch.rejected}, ignored {batch.ignored}")
            if taken >= messages:
                break
        took_s = time.perf_counter() - began_s
        await batches.aclose()  # type: ignore[attr-defined]
    return taken / took_s


def measured(program: Path, messages: int, machines: int) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="outrider-mqtt-") as folder,
        Mosquitto(program, Path(folder) / "broker", saves_each_change=False) as broker,
    ):
        asyncio.run(until_connected(adapter(broker)))
        sending = publisher(broker, messages, machines)
        live = asyncio.run(taken_per_s(adapter(broker), messages))
        sending.wait(WITHIN_S)
        sending = publisher(broker, messages, machines)
        sending.wait(WITHIN_S)
        backlog = asyncio.run(taken_per_s(adapter(broker), messages))
    return {"live_per_s": live, "backlog_per_s": backlog}


def main() -> int:
    parser = argparse.ArgumentParser(description="Messages per second through the mqtt adapter.")
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--machines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    given = parsed(parser, messages=500, machines=5, rounds=1)
    program = program_path("mosquitto")
    if program is None:
        print("Mosquitto not found; use `make peers`", file=sys.stderr)
        return 0
    rounds = [measured(program, given.messages, given.machines) for _ in range(given.rounds)]
    figures = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    figures["calibration_s"] = calibration_s()
    if given.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            print(f"{key:16} {value:12,.3f}" if value < 1 else f"{key:16} {value:12,.0f}")
    return int(figures["live_per_s"] < BUDGET_PER_S)


if __name__ == "__main__":
    sys.exit(main())

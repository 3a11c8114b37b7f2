"""A newcomer's endpoint: one file and one line, and it is served and described.

The file is the example that docs/adding-parts.md shows.
"""

import shutil
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outrider.model.events import COMPLETED, EVICTED, STARTED, SUBMITTED
from outrider.model.jobs import JobSpec
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.journal.recording import Recording
from outrider.service.mqtt.publisher import Publisher
from outrider.service.web import endpoints, make_app, serve
from tests.fixtures.cores import T, core_of, tell


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files count as files of the endpoints' own folder."""
    folder = tmp_path / "endpoints"
    folder.mkdir()
    monkeypatch.setattr(endpoints, "__path__", [*endpoints.__path__, str(folder)])
    return folder


async def test_a_file_and_a_line_in_the_list_make_an_endpoint(
    folder: Path, repository: Path, tmp_path: Path
) -> None:
    shutil.copy(repository / "examples" / "endpoint" / "waste.py", folder)
    served = endpoints.load_endpoints((*endpoints.NAMES, "waste"))

    core = core_of("log", timezone="UTC")
    runs: list[Any] = [
        (T, SUBMITTED, "1", JobSpec()),
        (T, STARTED, "1", ("m1", 1)),
        (T + 600, EVICTED, "1", "owner"),
        (T + 700, STARTED, "1", ("m1", 1)),
        (T + 900, COMPLETED, "1", None),
    ]
    tell(core, "log", runs, T + 1_000)
    recording = Recording(tmp_path / "state")
    view = DaemonView(core, recording, Publisher(recording, lambda: core))
    try:
        async with (
            serve(make_app(view, None, served), "127.0.0.1", 0) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
        ):
            async with client.get("/api/v1/waste") as answer:
                assert (answer.status, await answer.json()) == (200, {"badput_s": 600.0})
            async with client.get("/api/v1/waste?least_s=601") as answer:
                assert await answer.json() == {"badput_s": 0.0}
            async with client.get("/api/v1/waste?leest_s=601") as answer:
                assert answer.status == 400
                assert 'did you mean "least_s"?' in (await answer.json())["error"]
            async with client.get("/api/v1/openapi.json") as answer:
                document = await answer.json()
            async with client.get("/api/v1/status") as answer:
                assert answer.status == 200
    finally:
        recording.close()
    described = document["paths"]["/api/v1/waste"]["get"]
    assert described["summary"] == "CPU time that came to nothing."
    assert [p["name"] for p in described["parameters"]] == ["least_s"]
    shape = described["responses"]["200"]["content"]["application/json"]["schema"]
    assert shape == {"$ref": "#/components/schemas/Waste"}
    assert document["components"]["schemas"]["Waste"]["required"] == ["badput_s"]


def test_a_name_in_the_list_without_a_file_is_told_by_its_name() -> None:
    with pytest.raises(ModuleNotFoundError, match="wasted"):
        endpoints.load_endpoints(("wasted",))


def test_every_file_of_the_folder_is_in_the_list() -> None:
    (folder,) = endpoints.__path__
    files = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert files == set(endpoints.NAMES)

"""`outrider check-config`, and the example with every setting."""

from pathlib import Path

import pytest

from outrider.service.config.declarations import Config
from outrider.service.config.loaded import load_config
from outrider.service.config.reading import settings_of
from tests.cli.running import outrider, shell

EXAMPLE = "systemd/outrider.toml.example"
RIGHT = """
mode = "shadow"
listen = "127.0.0.1:0"
[clusters.library]
match = ["lib-*"]
active_w = 60.0
[adapters.pool]
type = "logtail"
paths = ["/var/log/condor/EventLog"]
[policies.bandit]
epsilon = 0.05
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file that is right."""
    file = tmp_path / "outrider.toml"
    file.write_text(RIGHT)
    return file


def uncommented(text: str) -> str:
    """The example with every `#` taken away that stands right before a setting or a table."""
    return "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line
        for line in text.splitlines()
    )


def test_the_example_loads_as_it_is_and_uncommented(repository: Path, tmp_path: Path) -> None:
    text = (repository / EXAMPLE).read_text(encoding="utf-8")
    for name, content in (("as-it-is", text), ("uncommented", uncommented(text))):
        (tmp_path / name).write_text(content)
    plain = load_config(tmp_path / "as-it-is").config
    full = load_config(tmp_path / "uncommented").config
    assert list(plain.policies) == ["bandit"]
    assert {"bandit", "fifo", "lowest_watts", "random_match"} <= set(full.policies)
    for setting in settings_of(Config):
        if setting.name not in ("clusters", "adapters", "policies"):
            assert getattr(full, setting.name) == getattr(plain, setting.name), setting.name


def test_the_example_names_every_setting(repository: Path) -> None:
    text = (repository / EXAMPLE).read_text(encoding="utf-8")
    for setting in settings_of(Config):
        if setting.name not in ("clusters", "acting", "mqtt", "adapters", "policies"):
            assert f"{setting.name} =" in text, setting.name
            assert setting.description, f"{setting.name} has no description"


def test_there_is_an_example_where_an_adapters_package_is_not_installed(
    without_bindings: Path, tmp_path: Path
) -> None:
    done = shell("check-config", "--example", PYTHONPATH=str(without_bindings))
    assert done.code == 0
    prose = " ".join(line.removeprefix("# ") for line in done.out.splitlines())
    assert "mock_condor" in prose
    assert "pip install 'outrider[htcondor]'" in prose
    (tmp_path / "example").write_text(done.out)
    assert load_config(tmp_path / "example").config.adapters.keys() == {"logtail"}


def test_a_right_configuration_is_explained(config: Path) -> None:
    done = outrider("check-config", config)
    assert done.code == 0
    assert "shadow: records what the policies would do, and changes nothing" in done.out
    assert "pool (logtail)" in done.out
    assert "lib-*; 60 W" in done.out


def test_json_tells_every_value_in_force(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", "/run/somewhere")
    told = outrider("check-config", config, "--json").json()
    assert told["ok"] is True
    assert told["mode"] == "shadow"
    assert told["journal"] == "/run/somewhere/journal.sqlite"
    assert told["adapters"]["pool"]["type"] == "logtail"
    assert told["policies"]["bandit"]["settings"]["epsilon"] == 0.05
    assert told["policies"]["bandit"]["settings"]["sigma"] == 0.8
    assert told["config"]["retention_days"] == 90


WRONG = [
    ("mode =", "mdoe =", 'unknown setting "mdoe"; did you mean "mode"?'),
    ("epsilon", "epsilom", '[policies.bandit]: unknown setting "epsilom"; did you mean "epsilon"?'),
    ("paths", "path", '[adapters.pool]: unknown setting "path"; did you mean "paths"?'),
    ("active_w", "actve_w", '[clusters.library]: unknown setting "actve_w"'),
    ('"logtail"', '"logtial"', 'unknown adapter "logtial"; did you mean "logtail"?'),
    ("policies.bandit", "policies.bandid", 'unknown policy "bandid"; did you mean "bandit"?'),
    ("0.05", "1.5", '"epsilon" = 1.5'),
    (
        '"shadow"',
        '"shadwo"',
        'line 2: "mode" = "shadwo": expected one of "observe", ',
    ),
    ("[adapters.pool]", "[adapters.pool", "not valid TOML"),
    ("127.0.0.1:0", "0.0.0.0:9690", "is beyond loopback and needs tls_cert, tls_key, token_file"),
]


@pytest.mark.parametrize(("right", "wrong", "why"), WRONG)
def test_what_is_wrong_is_named_with_what_would_be_right(
    config: Path, right: str, wrong: str, why: str
) -> None:
    config.write_text(RIGHT.replace(right, wrong, 1))
    done = outrider("check-config", config)
    assert done.code == 2
    assert why in done.err
    assert len(done.err.splitlines()) == 1
    told = outrider("check-config", config, "--json")
    assert told.code == 2
    assert '"ok": false' in told.out


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    done = outrider("check-config", tmp_path / "no.toml")
    assert done.code == 2
    assert (
        done.err == f"outrider: {tmp_path / 'no.toml'}: cannot be read: No such file or directory; "
        "expected a file as `outrider check-config --example` prints it\n"
    )


def test_without_file_and_example_it_asks_for_one() -> None:
    assert outrider("check-config").code == 2
    assert outrider("check-config", "--example").out.startswith(
        "# Outrider's configuration, an example:"
    )

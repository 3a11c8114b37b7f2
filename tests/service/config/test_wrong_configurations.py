"""A wrong configuration is refused: exit code 2, naming file, place, value and what is right."""

import subprocess
from pathlib import Path

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import load_config
from tests.service.running.process import OUTRIDER

RIGHT = '[adapters.log]\ntype = "logtail"\npaths = ["/var/log/condor/EventLog"]\n'

WRONG = {
    "a_misspelt_key": ('lisen = "127.0.0.1:0"\n' + RIGHT, ["lisen", 'did you mean "listen"?']),
    "a_wrong_type": ("seed = 'seven'\n" + RIGHT, ["line 1", "seed", '"seven"', "whole number"]),
    "a_value_out_of_range": (
        "reconsider_s = 0\n" + RIGHT,
        ["line 1", "reconsider_s", "0", "more than 0"],
    ),
    "an_unknown_mode": ("mode = 'activ'\n" + RIGHT, ["mode", "activ"]),
    "a_misspelt_adapter_setting": (
        RIGHT + 'start_att = "now"\n',
        ["[adapters.log]", "start_att", 'did you mean "start_at"?'],
    ),
    "an_adapter_setting_out_of_range": (
        RIGHT + "poll_s = 0.0\n",
        ["[adapters.log]", "poll_s", "0.0", "0.05 or more"],
    ),
    "a_missing_adapter_setting": ("[adapters.logtail]\n", ["[adapters.logtail]", "paths"]),
    "an_unknown_adapter": (
        '[adapters.log]\ntype = "logtial"\n',
        ["[adapters.log]", "logtial", 'did you mean "logtail"?'],
    ),
    "an_unknown_policy": (
        RIGHT + "[policies.bandti]\n",
        ["[policies.bandti]", 'did you mean "bandit"?'],
    ),
    "a_misspelt_policy_setting": (
        RIGHT + "[policies.bandit]\nepsilom = 0.1\n",
        ["[policies.bandit]", "epsilom", 'did you mean "epsilon"?'],
    ),
    "an_unknown_preset": (
        RIGHT + '[policies.bandit]\npreset = "literally"\n',
        ["[policies.bandit]", 'did you mean "literal"?'],
    ),
    "no_adapter_at_all": ("seed = 1\n", ["no adapter", "logtail"]),
    "listening_beyond_loopback": (
        'listen = "0.0.0.0:9690"\n' + RIGHT,
        ["0.0.0.0:9690", "tls_cert, tls_key, token_file"],
    ),
    "an_address_that_is_none": ('listen = "9690"\n' + RIGHT, ["listen", "9690", "127.0.0.1:9690"]),
    "a_simulated_site_beside_a_real_one": (
        RIGHT + "[adapters.campus]\ntype = 'simulated'\nmachines = 2\nweeks = 0.1\n",
        ["[adapters.campus]", "no other adapter next to it"],
    ),
    "shares_that_do_not_sum_to_one": (
        "shares = { a = 0.7, b = 0.2 }\n" + RIGHT,
        ["[shares]", "a=0.7", "0.9", "sum to 1"],
    ),
    "an_unknown_timezone": (
        'timezone = "Europe/Berlim"\n' + RIGHT,
        ["timezone", "Europe/Berlim", "Europe/Berlin"],
    ),
    "opening_hours_that_are_none": (
        '[clusters.lab]\nopen = "mon-fri 9-17h"\n' + RIGHT,
        ["[clusters.lab]", "open", "mon-fri 9-17h"],
    ),
    "a_misspelt_cluster_setting": (
        "[clusters.lab]\nactive_watts = 90\n" + RIGHT,
        ["[clusters.lab]", "active_watts", 'did you mean "active_w"?'],
    ),
    "a_table_that_is_a_number": ("adapters = 7\n", ["adapters", "7"]),
    "clusters_that_are_a_list": ("clusters = [1]\n" + RIGHT, ["clusters"]),
    "no_toml": ("this is not TOML\n", ["not valid TOML", "line 1"]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_refused_by_name(wrong: str, tmp_path: Path) -> None:
    text, named = WRONG[wrong]
    path = tmp_path / "outrider.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refusal:
        load_config(path)
    for words in [str(path), *named]:
        assert words in str(refusal.value)


def test_the_right_one_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "outrider.toml"
    path.write_text(RIGHT)
    assert load_config(path).broken == {}


def test_the_command_says_it_in_one_line_and_ends_with_2(tmp_path: Path) -> None:
    path = tmp_path / "outrider.toml"
    path.write_text(WRONG["a_misspelt_key"][0])
    done = subprocess.run(
        [OUTRIDER, "run", "--config", path], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 2
    told = f'{path}: line 1: unknown setting "lisen"; did you mean "listen"?'
    assert done.stderr.splitlines() == [f"outrider: {told}"]
    assert not (tmp_path / "state").exists()

"""`outrider plugins`: all that is installed, a broken one beside the rest."""

from pathlib import Path

from tests.cli.running import outrider, shell

BROKEN = {
    "no_module": "a_module_that_is_not_there:Policy",
    "no_policy": "json:JSONDecoder",
}


def break_some(folder: Path) -> None:
    """Make a distribution in the folder whose plugins cannot be loaded."""
    info = folder / "broken_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-policies\nVersion: 1.0\n")
    points = "\n".join(f"{name} = {target}" for name, target in BROKEN.items())
    (info / "entry_points.txt").write_text(f"[outrider.policies]\n{points}\n")


def test_every_plugin_is_told_with_its_settings() -> None:
    told = outrider("plugins", "--json").json()
    assert set(told) == {"adapters", "policies", "readers", "estimators", "utilities"}
    for plugins in told.values():
        assert plugins, "a kind of plugin of which none is listed"
        for plugin in plugins:
            assert (plugin["state"], plugin["api_version"]) == ("ok", 1), plugin
            assert plugin["description"]
    policies = {plugin["name"]: plugin for plugin in told["policies"]}
    assert {"bandit", "fifo", "lowest_watts", "random_match"} <= set(policies)
    bandit = policies["bandit"]
    assert (bandit["state"], bandit["api_version"]) == ("ok", 1)
    settings = {setting["name"]: setting for setting in bandit["settings"]}
    assert settings["epsilon"]["default"] == 0.1
    assert settings["epsilon"]["limits"] == "0 or more, at most 1"
    assert settings["reconsider_s"]["default"] is None
    assert settings["reconsider_s"]["limits"] == "more than 0"
    assert all(setting["description"] for setting in settings.values())
    assert {plugin["name"] for plugin in told["readers"]} >= {"htcondor"}


def test_a_broken_plugin_is_named_and_hides_no_other(tmp_path: Path) -> None:
    break_some(tmp_path)
    done = shell("plugins", PYTHONPATH=str(tmp_path))
    assert done.code == 1
    assert "No module named" in done.out
    for name in ("no_module", "no_policy", "bandit", "htcondor", "logtail"):
        assert name in done.out


def test_a_plugin_that_needs_a_package_of_others_is_unavailable_and_not_broken(
    without_bindings: Path,
) -> None:
    done = shell("plugins", "--json", PYTHONPATH=str(without_bindings))
    assert done.code == 0
    states = {plugin["name"]: plugin for plugin in done.json()["adapters"]}
    assert states["mock_condor"]["state"] == "unavailable"
    assert "pip install 'outrider[htcondor]'" in states["mock_condor"]["why"]
    assert states["logtail"]["state"] == "ok"


def test_a_broken_plugin_that_nobody_uses_stops_nothing(tmp_path: Path, campus: Path) -> None:
    break_some(tmp_path)
    words = ("replay", campus, "--until", 1000, "--policy")
    assert shell(*words, "fifo", PYTHONPATH=str(tmp_path)).code == 0
    used = shell(*words, "no_module", PYTHONPATH=str(tmp_path))
    assert used.code == 2
    assert 'policy "no_module" (a_module_that_is_not_there:Policy) cannot be loaded' in used.err


def test_people_get_a_list() -> None:
    done = outrider("plugins")
    assert done.code == 0
    for word in ("adapters", "policies", "readers", "estimators", "utilities", "API"):
        assert word in done.out
    for word in ("bandit", "learned", "linear", "ok"):
        assert word in done.out

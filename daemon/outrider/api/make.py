"""Making a policy from its name and settings: the same way in the CLI and in the daemon."""

from collections.abc import Mapping
from typing import Any

from outrider.api.chance import stream
from outrider.api.plugins import load_policy
from outrider.api.policy import Policy
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.settings import build


def make_policy(
    name: str,
    given: Mapping[str, Any],
    seed: int,
    where: str,
    preset: str | None = None,
) -> Policy:
    """A policy, ready to sit down.

    Args:
        name: of the plugin.
        given: settings by name; they win over the preset's.
        seed: of its chance.
        where: the place to name in an error.
        preset: one of the policy's named settings.

    Raises:
        PluginError: the policy cannot be loaded.
        ConfigurationError: a setting or the preset is wrong.
    """
    kind = load_policy(name)
    settings = dict(given)
    if preset is not None:
        if preset not in kind.presets:
            raise ConfigurationError(
                f'{where}: unknown preset "{preset}"; {nearest(preset, kind.presets)}'
            )
        settings = {**kind.presets[preset], **settings}
    return kind(build(kind.settings_type, settings, where), stream(seed, f"policy:{name}"))

"""Whether the installed systemd units let the daemon do what its configuration names."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.cli.findings import Check
from outrider.cli.printing import shown

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig


def check_unit(loaded: "LoadedConfig", root: Path = Path("/")) -> Iterator[Check]:
    """One or more checks, where a unit is installed that runs this configuration.

    Whoever runs the doctor by hand is not in the unit: what it keeps closed shows here alone.
    """
    from outrider.service.unit.addresses import is_among
    from outrider.service.unit.beside import units_to_enable
    from outrider.service.unit.installed import installed_unit, is_enabled
    from outrider.service.unit.needs import needs_of

    unit = installed_unit(root)
    if unit is None or unit.config is None or not _is_same(unit.config, Path(loaded.source)):
        return
    needs = needs_of(loaded)
    for name in units_to_enable(needs):
        if not is_enabled(name, root):
            yield Check(
                "unit", "warn", f"{name} is not enabled, and this configuration needs it",
                f"outrider install-service --config {shown(loaded.source)} writes it; then "
                f"systemctl enable --now {name}",
            )  # fmt: skip
    blocked = [
        f"{peer.what} {peer.host} ({address})"
        for peer in needs.peers
        for address in peer.addresses
        if unit.denies and not is_among(address, unit.allowed)
    ]
    if not blocked:
        yield Check("unit", "ok", f"{unit.path}: whom the daemon connects to may be reached")
        return
    yield Check(
        "unit", "fail",
        f"{unit.path} keeps the daemon from {', '.join(blocked)} (IPAddressDeny)",
        f"outrider install-service --config {shown(loaded.source)} writes the drop-in "
        "outrider.service.d/50-network.conf; or add IPAddressAllow= to one of your own. Then "
        "systemctl daemon-reload, and restart",
    )  # fmt: skip


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()

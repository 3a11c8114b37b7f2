"""Whether each lever works: tried on a job of its own."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from outrider.cli.findings import Check
from outrider.model.errors import OutriderError

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig


def check_levers(loaded: "LoadedConfig") -> Iterator[Check]:
    """The findings of all levers of all adapters, as they come."""
    from outrider.service.config.state_folder import state_folder
    from outrider.service.daemon.levers import make_levers
    from outrider.service.daemon.sources import make_adapters

    levers = make_levers(make_adapters(loaded, {}), state_folder(loaded))
    if not levers:
        yield Check("levers", "warn", "no adapter here can change anything", "shadow is all it can")
    for label, of_adapter in levers.items():
        for lever in of_adapter:
            name = f"lever {label}: {lever.name}"
            try:
                found = [Check(f"{name}: {what}", *rest) for what, *rest in lever.prove()]  # type: ignore[arg-type]
            except OutriderError as error:
                found = [Check(name, "fail", str(error), "mend that, then try again")]
            except Exception as error:  # noqa: BLE001 - a stranger's code; it must not hide the rest
                found = [Check(name, "fail", f"{type(error).__name__}: {error}", "report it")]
            finally:
                lever.close()
            untried = "cannot be tried without a job of a user's"
            yield from found or [Check(name, "warn", untried, "try it in a canary")]

"""What the daemon knows of its site beside events, as configuration and adapters tell it."""

from collections.abc import Iterable, Mapping

import msgspec
import structlog

from outrider.api.adapter import Adapter
from outrider.ledger.site_facts import Incumbent, SiteFacts
from outrider.model.clusters import ClusterSpec
from outrider.model.site_habits import SiteHabits
from outrider.service.config.loaded import LoadedConfig

log = structlog.get_logger()


def site_facts(
    loaded: LoadedConfig, adapters: Mapping[str, Adapter], clusters: Iterable[ClusterSpec]
) -> SiteFacts:
    """The facts of a site: the configuration comes first, then the first adapter that knows.

    Of the decision epoch it comes last: it always has one, be it that of nobody's choice.

    Args:
        loaded: the configuration.
        adapters: in force, by label.
        clusters: as adapters know them; those of the configuration replace them.
    """
    habits = SiteHabits(reboot=loaded.config.reboot)
    incumbent = None
    for label, adapter in adapters.items():
        policy, more = _told_by(label, adapter)
        habits = habits.completed_by(more)
        if incumbent is None and policy is not None:
            incumbent = Incumbent(policy, label)
    habits = habits.completed_by(SiteHabits(reconsider_s=loaded.config.reconsider_s))
    declared = {spec.name: spec for spec in [*clusters, *loaded.cluster_specs()]}
    return SiteFacts(loaded.discipline().name, habits, tuple(declared.values()), incumbent)


def _told_by(label: str, adapter: Adapter) -> tuple[str | None, SiteHabits]:
    """Incumbent and habits as an adapter tells them; what is told wrongly is not known."""
    try:
        policy = msgspec.convert(adapter.incumbent, str | None)
        return policy, msgspec.convert(msgspec.to_builtins(adapter.habits), SiteHabits)
    except Exception as error:  # noqa: BLE001 - a plugin's declaration must not end the daemon
        log.warning("ignore_site_facts", adapter=label, reason=f"{type(error).__name__}: {error}")
        return None, SiteHabits()

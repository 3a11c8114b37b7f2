"""The daemon's state as its journal tells it, policies in shadow included, beside the daemon."""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import structlog

from outrider.ledger import Journal, SnapshotStore
from outrider.ledger.snapshots import Snapshot
from outrider.model.clusters import ClusterSpec
from outrider.model.events import NamedEvent
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core import Core
from outrider.service.locked_folder import SNAPSHOTS_NAME
from outrider.service.refeeding import refeed

log = structlog.get_logger()


def recall_core(
    loaded: LoadedConfig, clusters: list[ClusterSpec], journal: Path, until_seq: int
) -> tuple[Core, list[str]]:
    """A core in the state in which the daemon was at an input of its journal.

    It begins from the newest snapshot that fits, as a restart does; without one, the policies learn
    from the journal alone.

    Args:
        loaded: the configuration.
        clusters: their habits, as on record.
        journal: of the daemon, which may be writing it.
        until_seq: number of the last input.

    Returns:
        The core, and names of the policies that are not in the snapshot: they know nothing.

    Raises:
        LedgerError: the journal cannot be read.
    """
    snapshots = SnapshotStore(journal.parent / SNAPSHOTS_NAME)
    core, seq, fresh = Core(loaded, [], clusters), 0, []
    for snapshot in snapshots.newest_first(until_seq):
        try:
            fresh, seq = _restored(core, snapshot), snapshot.seq
            break
        except Exception as error:  # noqa: BLE001 - of another version, or a plugin's own fault
            log.warning("pass_over_snapshot", reason=f"{type(error).__name__}: {error}")
            core = Core(loaded, [], clusters)
    with Journal(journal, read_only=True) as opened:
        refeed(core, _until(opened.inputs_after(seq), until_seq))
    return core, fresh


def _restored(core: Core, snapshot: Snapshot) -> list[str]:
    return core.restore(snapshot.state)


def _until(
    rows: Iterator[tuple[int, str, NamedEvent]], seq: int
) -> Iterator[tuple[int, str, NamedEvent]]:
    return takewhile(lambda row: row[0] <= seq, rows)

"""A policy runner in a snapshot: everything that changes, as plain data."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

from outrider.engine.scheduling.plain_data import check_saved
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.engine.state.packing import pack
from outrider.engine.state.site import Site
from outrider.model.decisions import START


def save_runner(runner: PolicyRunner, site: Site) -> dict[str, Any]:
    """A runner as plain data, the policy's learning and random generator included.

    A policy that fails at it has failed: it is asked no more, and the others are saved. Raises
    `PolicyError` where the runner is strict.
    """
    state = runner.policy.rng.getstate()
    learned: dict[str, Any] = {}
    try:
        learned = _learned_state(runner, site)
    except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
        runner.fail(error)
    predictions = runner.predictions
    return {
        "policy": learned,
        "rng": [state[0], list(state[1]), state[2]],
        "queue": runner.queue.save(),
        "columns": runner.scheduling_pass.save(),
        "awaited": runner.scheduling_pass.awaited.save(),
        "moves": dict(runner.moves),
        "refused": dict(runner.refused),
        "running": [[number, key, on] for number, (key, on) in runner.running.items()],
        "predictions": None if predictions is None else predictions.save(),
        "deferrals": runner.deferrals.save(),
        "broken": runner.broken,
        "counts": [
            runner.decisions, runner.starts, runner.agreed, runner.disagreed, runner.reward_n,
        ],
        "sums": [runner.reward_sum, runner.longest_ended_deferral_s],
    }  # fmt: skip


def _learned_state(runner: PolicyRunner, site: Site) -> dict[str, Any]:
    """What the policy saves. Raises `TypeError` if it is not plain data."""
    saved = runner.policy.save(site)
    check_saved(saved)
    return saved


def restore_runner(
    runner: PolicyRunner, saved: dict[str, Any], clusters: list[int], site: Site
) -> bool:
    """Go on from what `save_runner` gave.

    Args:
        runner: new, with the same policy.
        saved: its state.
        clusters: `clusters[i]` is today's number of saved cluster i.
        site: restored already.

    Returns:
        False, and nothing is changed, if the policy says that what it learned does not fit. Any
        other error is a failure: what it changed is not known, so it is asked no more.
    """
    try:
        runner.policy.restore(saved["policy"], site)
    except ValueError:
        return False
    except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
        runner.fail(error)
        return False
    version, numbers, gauss = saved["rng"]
    runner.policy.rng.setstate((version, tuple(numbers), gauss))
    runner.queue.restore(saved["queue"], clusters, site.now + runner.reconsider_s)
    columns = saved.get("columns") or {}
    runner.scheduling_pass.restore(columns, site)
    runner.scheduling_pass.awaited.restore(saved.get("awaited", []))
    if bool(columns) != runner.looks_at_runs:  # another kind of pass was saved: its rule changed
        runner.queue.decide_anew(START if runner.acting else "")
    runner.moves = Counter(saved.get("moves", {}))
    runner.refused = Counter(saved["refused"])
    if runner.learns:  # it may have been saved by a release of the policy that did
        runner.running = {number: (_hashable(key), on) for number, key, on in saved["running"]}
    if runner.predictions is not None and saved["predictions"] is not None:
        runner.predictions.restore(saved["predictions"])
    runner.deferrals.restore(saved["deferrals"])
    runner.broken = saved["broken"]
    (
        runner.decisions, runner.starts, runner.agreed, runner.disagreed, runner.reward_n,
    ) = saved["counts"]  # fmt: skip
    runner.reward_sum, runner.longest_ended_deferral_s = saved["sums"]
    return True


def resume_runner(runner: PolicyRunner, saved: dict[str, Any], site: Site) -> bool:
    """Go on with what was learned before a time in which nothing was decided.

    Jobs have come and gone since: which wait is not taken from what was saved.

    Args:
        runner: new, with the same policy, and without jobs.
        saved: what `save_runner` gave before that time.
        site: as it is now.

    Returns:
        False, and nothing is changed, if the policy says that what it learned does not fit.
    """
    predictions = saved["predictions"]
    away = {
        **saved,
        "queue": runner.queue.save(),
        "columns": runner.scheduling_pass.save(),
        "awaited": [],
        "running": [],
        "predictions": None if predictions is None else {**predictions, "open": pack(())},
        "deferrals": {**saved["deferrals"], "deferred_s": pack(()), "cut_short": pack(())},
    }
    return restore_runner(runner, away, [], site)


def _hashable(key: Any) -> Hashable:
    """A key as it was before plain data made lists of its tuples."""
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key

"""The discipline `strict`, run forward: no job passes another."""

import numpy as np

from outrider.twin.starts.compiling import compiled
from outrider.twin.starts.queue_state import Floats, Ints
from outrider.twin.starts.running import pop, push


@compiled
def strict_starts(
    now_s: float,
    free_cpus: float,
    total_cpus: float,
    since_s: Floats,
    cpus: Floats,
    run_s: Floats,
    first_wanted: int,
    change_s: Floats,
    change_cpus: Floats,
    change_first: Ints,
    ends_runs: bool,
) -> Floats:
    """(replicates, wanted) start of each waiting job from `first_wanted` on, seconds; inf: never.

    A job starts when it and all before it have their CPUs, so each end is looked at once.

    Args:
        now_s: the present moment.
        free_cpus: CPUs that nobody uses.
        total_cpus: of the site; a wider job never starts, and nobody waits behind it.
        since_s: (running,) when each began.
        cpus: (running + waiting,) of the jobs, those that wait in the order of the queue.
        run_s: (replicates, running + waiting) how long each runs.
        first_wanted: place in the queue of the first whose start is wanted.
        change_s: (changes,) when the CPUs that jobs may use change, replicate after replicate.
        change_cpus: (changes,) by how many.
        change_first: (replicates + 1,) place of the first change of each replicate.
        ends_runs: where more go than are free, runs end; else the next ends pay for it.
    """
    replicates, jobs_n = run_s.shape
    running_n = len(since_s)
    first = running_n + first_wanted
    starts_s = np.full((replicates, jobs_n - first), np.inf)
    heap = np.empty((jobs_n + 1, 3))
    for replicate in range(replicates):
        n, free, time_s = 0, free_cpus, now_s
        change, changes_end = change_first[replicate], change_first[replicate + 1]
        for job in range(running_n):
            end_s = max(now_s, since_s[job] + run_s[replicate, job])
            n = push(heap, n, end_s, cpus[job], np.inf)
        for job in range(running_n, jobs_n):
            if cpus[job] > total_cpus:
                continue
            while free < cpus[job] and (n or change < changes_end):
                if change < changes_end and (n == 0 or change_s[change] <= heap[0, 0]):
                    time_s = max(time_s, change_s[change])
                    free += change_cpus[change]
                    change += 1
                    while ends_runs and free < 0.0 and n:
                        n -= 1  # of the heap: any of those that do not end next
                        free += heap[n, 1]
                else:
                    time_s = max(time_s, heap[0, 0])
                    free += heap[0, 1]
                    n = pop(heap, n)
            if free < cpus[job]:
                break
            free -= cpus[job]
            if job >= first:
                starts_s[replicate, job - first] = time_s
            n = push(heap, n, time_s + run_s[replicate, job], cpus[job], np.inf)
    return starts_s

"""A distribution with broken plugins, as an installed one looks: a module and its dist-info."""

import os
from pathlib import Path

MODULE = '''\
from outrider.api import Adapter, AdapterSettings, Batch, Choice, Learns, Policy


class Late(Policy):
    """Chooses three times, then fails."""

    name = "late_failure"
    description = "fails after a while"
    api_version = 1
    asked = 0

    def choose(self, job, evaluation, view, may_defer):
        self.asked += 1
        if self.asked > 3:
            raise RuntimeError("out of ideas")
        return Choice(view.draw(self.rng), "drawn")


class Untaught(Learns, Late):
    name = "untaught"

    def choose(self, job, evaluation, view, may_defer):
        return Choice(view.draw(self.rng), "drawn")

    def observe(self, outcome, view, on_policy):
        raise ZeroDivisionError("nothing learned")


class Forgetful(Untaught):
    name = "forgetful"

    def observe(self, outcome, view, on_policy):
        return [1.0]

    def save(self, view):
        raise OSError("cannot remember")


class UnmadePolicy(Late):
    """Cannot even be made, unless a file says that it can."""

    name = "unmade_policy"

    def __init__(self, settings, rng):
        import os

        if not os.path.exists(os.environ.get("UNMADE_POLICY_MAY", "")):
            raise LookupError("no model here")
        super().__init__(settings, rng)


class Garbler(Adapter):
    """Yields what is no event."""

    name = "garbler"
    description = "yields what is no event"
    api_version = 1

    async def batches(self, cursor):
        import asyncio
        import time

        now = time.time() - 10
        wrong = [(now, 99, "1", None), (float("nan"), 6, "1", None), (now, 9, "1", "m"), None, 7]
        wrong += [(now, 7, "1", "a reason of its own")]
        yield Batch(events=wrong, cursor=1, seen_until_s=now)
        while True:
            await asyncio.sleep(1)
            yield Batch(events=[], cursor=1, seen_until_s=time.time())


class Unmade(Adapter):
    """Cannot even be made."""

    name = "unmade"
    description = "raises while it is made"
    api_version = 1

    def __init__(self, label, settings):
        raise LookupError("no such pool")


class Raiser(Adapter):
    """Cannot hold a source open."""

    name = "raiser"
    description = "raises after one batch"
    api_version = 1

    async def batches(self, cursor):
        yield Batch(events=[], cursor=None)
        raise KeyError("lost my place")
'''
BROKEN = 'raise ImportError("needs a library that is not here")\n'
ENTRY_POINTS = """\
[outrider.adapters]
broken_adapter = broken_plugins_import:Anything
garbler = broken_plugins:Garbler
raiser = broken_plugins:Raiser
unmade = broken_plugins:Unmade

[outrider.policies]
broken_policy = broken_plugins_import:Anything
forgetful = broken_plugins:Forgetful
late_failure = broken_plugins:Late
unmade_policy = broken_plugins:UnmadePolicy
untaught = broken_plugins:Untaught
"""


def install(folder: Path) -> dict[str, str]:
    """Put the distribution into a folder; returns the environment in which it is found."""
    (folder / "broken_plugins.py").write_text(MODULE)
    (folder / "broken_plugins_import.py").write_text(BROKEN)
    information = folder / "broken_plugins-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken-plugins\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    path = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(part for part in path if part)}

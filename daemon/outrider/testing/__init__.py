"""Conformance tests for plugins, shipped with Outrider.

Two lines test a policy or an adapter in a package of its own::

    from outrider.testing import PolicyConformance

    class TestCoolestRoom(PolicyConformance):
        policy = CoolestRoom

pytest finds the tests by their names, but nothing here needs it: a suite is a plain class whose
``test_...`` methods raise `NotConforming`, or `unittest.SkipTest` where a test does not apply.
`check_policy`, `check_adapter`, `check_reader` and `check_lever` run all tests without a test
runner.

Beside the suites, for tests of one's own: `HandSite` (a policy on machines and jobs set by the
test), `outrider.testing.hand_campus` and `hand_workload` (traces, a row a job), `planned` (what a
policy that plans did with one), `campuses` (a generated campus of three days).
"""

from outrider.testing.adapters import AdapterConformance, check_adapter
from outrider.testing.conformance import NotConforming
from outrider.testing.fixtures import HandSite
from outrider.testing.harness import AdapterHarness
from outrider.testing.levers import LeverConformance, LeverHarness, check_lever
from outrider.testing.policies import PolicyConformance, check_policy
from outrider.testing.readers import ReaderConformance, check_reader

__all__ = [
    "AdapterConformance",
    "AdapterHarness",
    "HandSite",
    "LeverConformance",
    "LeverHarness",
    "NotConforming",
    "PolicyConformance",
    "ReaderConformance",
    "check_adapter",
    "check_lever",
    "check_policy",
    "check_reader",
]

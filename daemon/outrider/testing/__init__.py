"""Conformance tests for plugins, shipped with Outrider.

Two lines test a policy or an adapter in a separate package::

    from outrider.testing import PolicyConformance

    class TestCoolestRoom(PolicyConformance):
        policy = CoolestRoom

pytest finds the tests by their names, but it is not required: a suite is a plain class whose
``test_...`` methods raise `NotConforming`, or `unittest.SkipTest` where a test does not apply.
`check_policy`, `check_adapter`, `check_reader` and `check_lever` run all tests without a test
runner.

For other tests there are: `HandSite` (a policy on machines and jobs set by the
test), `outrider.testing.hand_campus` and `hand_workload` (traces, one row per job), `planned` (the
actions of a policy that plans), `campuses` (a generated campus of three days).
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

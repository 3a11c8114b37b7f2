"""What Outrider asks of a plugin, as tests that ship with it.

A policy or an adapter that lives in a package of its own proves with two lines that it fits::

    from outrider.testing import PolicyConformance

    class TestCoolestRoom(PolicyConformance):
        policy = CoolestRoom

pytest finds the tests by their names, but nothing here needs it: a suite is a plain class whose
``test_...`` methods raise `NotConforming`, or `unittest.SkipTest` where a question does not
apply. `check_policy` and `check_adapter` ask everything at once, without a test runner.
"""

from outrider.testing.adapters import AdapterConformance, check_adapter
from outrider.testing.harness import AdapterHarness
from outrider.testing.policies import PolicyConformance, check_policy
from outrider.testing.verdict import NotConforming

__all__ = [
    "AdapterConformance",
    "AdapterHarness",
    "NotConforming",
    "PolicyConformance",
    "check_adapter",
    "check_policy",
]

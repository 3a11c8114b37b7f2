"""Without HTCondor's bindings there is one clear message."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["htcondor2"] = None
from outrider.api import PluginError
try:
    import outrider_adapters.mock_condor.pool
except PluginError as error:
    print(error)
"""


def test_the_message_says_what_to_install() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.endswith("pip install 'outrider[htcondor]'\n")
    assert len(said.stdout.splitlines()) == 1

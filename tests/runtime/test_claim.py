"""Two runs of one machine never command one robot together."""

import subprocess
import sys

import pytest

from onboard.configs.errors import LinkError
from onboard.runtime.claim import sole_run

HOLD = (
    "import sys; from onboard.runtime.claim import sole_run\n"
    "with sole_run(231, 'lo'): print('held', flush=True); sys.stdin.read()"
)


def test_a_second_run_is_refused_until_the_first_one_is_gone_however_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(LinkError, match="another run on this machine commands the robot of domain 231"),
            sole_run(231, "lo"),
        ):
            pass
        other.kill()
    with sole_run(231, "lo"), sole_run(231, "eth0"), sole_run(230, "lo"):
        pass

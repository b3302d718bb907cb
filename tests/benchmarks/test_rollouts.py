"""The benchmark of `RolloutDataset`."""

import subprocess
import sys

import numpy as np

HELD_MB = 480


def peak_mb(statement: str) -> float:
    """What a fresh process finds its own peak to be after a statement."""
    code = f"import numpy as np\nfrom benchmarks.rollouts import peak_mb\n{statement}\nprint(peak_mb())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_memory_is_the_process_own_and_not_that_of_its_parent() -> None:
    held = np.ones(HELD_MB << 17, np.uint64)
    assert held.nbytes == HELD_MB << 20
    idle = peak_mb("")
    assert 5 < idle < 200
    assert peak_mb(f"held = np.ones({HELD_MB} << 17, np.uint64)") > idle + 0.9 * HELD_MB

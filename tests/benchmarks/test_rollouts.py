"""The benchmark of `RolloutDataset`."""

import subprocess
import sys

import numpy as np

from benchmarks.rollouts import peak_mb


def test_memory_is_the_process_own_and_not_that_of_its_parent() -> None:
    before = peak_mb()
    held = np.ones(60 << 20, np.uint64)
    code = "from benchmarks.rollouts import peak_mb; print(peak_mb())"
    child = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    assert peak_mb() > before + held.nbytes / 2**20 - 50
    assert 5 < child < 200

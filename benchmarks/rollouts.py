"""How fast ten hours of rollouts are read: `python -m benchmarks.rollouts`.

Writes 1.8 million rows (4 GB, in a temporary folder or the one given), then reads them as training code
does, in a process of its own so that its memory can be told.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOURS = 10
ROWS_PER_HOUR = 180_000
BATCH = 4096
HISTORIES = (0, 10, 20)
ROUNDS = 3


def write(folder: Path, files: int = HOURS, rows: int = ROWS_PER_HOUR) -> list[Path]:
    """Make the rollouts; those that are there already stay."""
    from tests.logging.large import long_rollout

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"hour{hour}.h5" for hour in range(files)]
    for hour, path in enumerate(paths):
        if not path.exists():
            long_rollout(path, rows, seed=hour)
    return paths


def read(paths: list[str], history: int, seed: int | None) -> dict[str, float]:
    """One pass over everything."""
    from onboard.logging.dataset import RolloutDataset

    start = time.perf_counter()
    with RolloutDataset(paths, history=history) as data:
        index_s = time.perf_counter() - start
        base_mb = peak_mb()
        start = time.perf_counter()
        rows = sum(len(batch) for batch in data.batches(BATCH, seed=seed))
        seconds = time.perf_counter() - start
    return {
        "rows": rows,
        "index_s": index_s,
        "rows_per_s": rows / seconds,
        "index_mb": base_mb,
        "peak_mb": peak_mb(),
    }


def peak_mb() -> float:
    """Largest memory that this process had in use since it began, MiB; 0 where the system does not tell.

    Not `ru_maxrss`, which a new process takes over from the one that started it.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def measure(paths: list[Path], history: int, seed: int | None) -> dict[str, float]:
    """`read` in a fresh process."""
    call = f"print(json.dumps(read({[str(path) for path in paths]}, {history}, {seed})))"
    code = f"import json; from benchmarks.rollouts import read; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def info(paths: list[Path]) -> float:
    """Seconds that `onboard log info` takes on all of them, start of the program included."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "onboard.cli.main", "log", "info", *map(str, paths)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print a table: medians of `ROUNDS` interleaved rounds."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = write(Path(sys.argv[1] if len(sys.argv) > 1 else scratch))
        jobs = [(history, seed) for history in HISTORIES for seed in (None, 0)]
        rounds = [([measure(paths, *job) for job in jobs], info(paths)) for _ in range(ROUNDS)]
        print(f"{'history':>8} {'order':>9} {'rows/s':>10} {'index s':>8} {'index MB':>9} {'peak MB':>8}")
        for number, (history, seed) in enumerate(jobs):
            runs = [found[number] for found, _ in rounds]
            middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            print(
                f"{history:>8} {'file' if seed is None else 'shuffled':>9} {middle['rows_per_s']:>10.0f} "
                f"{middle['index_s']:>8.2f} {middle['index_mb']:>9.0f} {middle['peak_mb']:>8.0f}"
            )
        print(f"onboard log info: {statistics.median(seconds for _, seconds in rounds):.2f} s")


if __name__ == "__main__":
    main()

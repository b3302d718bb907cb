"""Resident memory and open files of processes over time, and how much they grew."""

import os
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
WARM_UP_SHARE = 0.1
WARM_UP_S = 60.0
"""Left out at the beginning: whichever of the two is longer, but never more than a third. The rings of the
shared memory are gone through once in 30 s, and until then every slot is a page that was not there before."""
PART_SHARE = 0.1
"""Of what is left, the median of this first part is compared with that of the last."""
MOST_PERCENT = 1.0


@dataclass
class Series:
    """One process over time: seconds since the start, bytes, open descriptors."""

    pid: int
    seconds: list[float] = field(default_factory=list)
    rss: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def sample(self, seconds: float) -> None:
        """Look once; a process that has ended is passed over."""
        proc = Path("/proc", str(self.pid))
        try:
            pages = int((proc / "statm").read_text().split()[1])
            files = len(os.listdir(proc / "fd"))
        except (OSError, IndexError):
            return
        self.seconds.append(seconds)
        self.rss.append(pages * PAGE_BYTES)
        self.files.append(files)


def growth(series: Series) -> dict[str, Any]:
    """What a process grew by after its warm-up; `ok` below 1 % and without a descriptor more.

    Raises:
        ValueError: it was seen less than ten times.
    """
    if len(series.seconds) < 10:
        raise ValueError(f"process {series.pid} was seen {len(series.seconds)} times only")
    length = series.seconds[-1]
    warm = min(max(WARM_UP_S, WARM_UP_SHARE * length), length / 3)
    kept = [index for index, seconds in enumerate(series.seconds) if seconds >= warm]
    part = max(1, round(PART_SHARE * len(kept)))
    first, last = kept[:part], kept[-part:]
    before = statistics.median(series.rss[index] for index in first)
    after = statistics.median(series.rss[index] for index in last)
    files = [int(statistics.median(series.files[index] for index in some)) for some in (first, last)]
    percent = 100.0 * (after - before) / before
    return {
        "rss_mb": round(before / 1e6, 2),
        "rss_mb_end": round(after / 1e6, 2),
        "growth_percent": round(percent, 3),
        "files": files[0],
        "files_end": files[1],
        "warm_up_s": round(warm, 1),
        "ok": percent < MOST_PERCENT and files[1] <= files[0],
    }

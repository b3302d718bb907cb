"""A wall clock that can be set for some processes alone, by a small library that stands before the system's.

The machine's own clock is left alone: other programs live by it, and setting it needs rights.
"""

import shutil
import struct
import subprocess
from pathlib import Path

from tests.disks import UnavailableError

SOURCE = Path(__file__).with_name("shifted_clock.c")


class WallClock:
    """Builds the library and holds the shift.

    Args:
        folder: for the library and the file with the shift.

    Attributes:
        environment: of the processes whose clock it is.

    Raises:
        UnavailableError: there is no C compiler.
    """

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "shifted_clock.so", folder / "shift_ns"
        compiler = shutil.which("cc")
        if compiler is None:
            raise UnavailableError("a C compiler (cc) is needed to shift a wall clock; none is installed")
        self.shift(0.0)
        command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", str(SOURCE), "-o", str(library)]
        subprocess.run(command, check=True)
        self.environment = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(self._file)}

    def shift(self, seconds: float) -> None:
        """Set the clock to so much later than it is, at once."""
        data = struct.pack("<q", round(seconds * 1e9))
        if not self._file.exists():
            self._file.write_bytes(data)
            return
        with self._file.open("r+b", buffering=0) as file:  # the same file: it is mapped
            file.write(data)

"""Small file systems that fill up, hang, turn read-only or lose their power, for tests.

All of them need root, since they are mounted; where that is not allowed `UnavailableError` says so. Nothing
here depends on pytest, so that the list of faults uses them too.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

MIB = 1 << 20
_FREEZE, _THAW = 0xC0045877, 0xC0045878
_SHUTDOWN = 0x8004587D
_NOTHING_MORE = 2
"""Of ext4's shutdown: what was not written yet never is, its own journal included."""


class UnavailableError(Exception):
    """This machine does not allow it; the message says what and why."""


class Ext4:
    """An ext4 file system in a file of its own, mounted.

    Attributes:
        folder: where it is mounted.
        image: its file.
    """

    def __init__(self, folder: Path, image: Path, device: str) -> None:
        self.folder = folder
        self.image = image
        self._device = device

    def freeze(self) -> None:
        """From now on everything that writes waits, fdatasync included."""
        self._control(_FREEZE, 0)

    def thaw(self) -> None:
        """Let those go on who wait."""
        with suppress(OSError):  # it is not frozen
            self._control(_THAW, 0)

    @contextmanager
    def slow(self, hang_s: float, breath_s: float = 0.05) -> Iterator[None]:
        """Hang for `hang_s`, go on for `breath_s`, again and again."""
        done = threading.Event()

        def stutter() -> None:
            while not done.wait(breath_s):
                self.freeze()
                done.wait(hang_s)
                self.thaw()

        thread = threading.Thread(target=stutter, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def turn_read_only(self) -> None:
        """As the kernel does on a disk with an error: every write is refused, also to open files."""
        trigger = Path("/sys/fs/ext4") / Path(self._device).name / "trigger_fs_error"
        try:
            trigger.write_text("a test\n")
        except OSError as error:
            raise UnavailableError(f"this kernel can't inject an ext4 error ({error})") from error

    def cut_power(self) -> None:
        """Nothing more reaches the image, and every write fails: what is in it, a power cut would leave."""
        self._control(_SHUTDOWN, struct.pack("I", _NOTHING_MORE))

    def copy(self, to: Path) -> Path:
        """Copy the image as it is now; the copy can be mounted beside this disk, the image itself can't."""
        shutil.copyfile(self.image, to)
        return to

    def _control(self, request: int, argument: int | bytes) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, request, argument)
        finally:
            os.close(descriptor)


@contextmanager
def small_tmpfs(folder: Path, kib: int) -> Iterator[Path]:
    """A memory disk that is full soon, mounted on `folder` (made where it is missing).

    Raises:
        UnavailableError: it can't be mounted here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _mount(["-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)])
    try:
        yield folder
    finally:
        _unmount(folder)


@contextmanager
def ext4(folder: Path, image: Path, mib: int = 32) -> Iterator[Ext4]:
    """A new ext4 disk in the file `image`, mounted on `folder`.

    Raises:
        UnavailableError: it can't be made or mounted here.
    """
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    _call(["mkfs.ext4", "-q", "-F", str(image)])
    with mounted(folder, image) as disk:
        yield disk


@contextmanager
def mounted(folder: Path, image: Path) -> Iterator[Ext4]:
    """An ext4 image that exists, mounted on `folder`, its journal replayed as after a power cut.

    Raises:
        UnavailableError: it can't be mounted here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _mount(["-o", "loop,errors=remount-ro", str(image), str(folder)])
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    (device,) = {source for source, target, *_ in mounts if target == str(folder)}
    disk = Ext4(folder, image, device)
    try:
        yield disk
    finally:
        disk.thaw()
        _unmount(folder)


@contextmanager
def read_only_tmpfs(folder: Path) -> Iterator[Path]:
    """A disk on which nothing can be made.

    Raises:
        UnavailableError: it can't be mounted here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _mount(["-t", "tmpfs", "-o", "size=64k,ro", "tmpfs", str(folder)])
    try:
        yield folder
    finally:
        _unmount(folder)


def _mount(arguments: Sequence[str]) -> None:
    _call(["mount", *arguments])


def _unmount(folder: Path) -> None:
    """Now, or as soon as the last of its files is closed."""
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _call(command: Sequence[str]) -> None:
    if os.geteuid() != 0:
        raise UnavailableError(f"{command[0]} needs root; run the tests as root to see this one")
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"{command[0]} is not installed")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UnavailableError(f"{command[0]} is refused here: {result.stderr.strip()}")

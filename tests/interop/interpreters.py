"""Environments of other Python versions: an interpreter found or fetched, filled once, then kept."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

OURS = ("numpy", "msgspec", "pyyaml")
"""What the DDS part of this project needs besides cyclonedds."""

SDK = "unitree-sdk2py-dimos==1.0.3"
"""Installed for its files alone: its requirements (opencv, an unpinned cyclonedds) are not wanted."""


class EnvironmentMissingError(Exception):
    """No such Python here, and none can be fetched."""


class EnvironmentBrokenError(Exception):
    """The environment can't be made; the message holds the installer's last words."""


def environment(python: str, *packages: str, bare: tuple[str, ...] = ()) -> str:
    """The interpreter of an environment with these packages; made on first use, beside this one's.

    Args:
        python: version like "3.10".
        packages: installed with what they require.
        bare: installed for their files alone.

    Raises:
        EnvironmentMissingError: there is no such Python.
        EnvironmentBrokenError: it can't be filled.
    """
    key = hashlib.sha256(repr((python, packages, bare)).encode()).hexdigest()[:12]
    folder = Path(sys.prefix) / "interop" / f"py{python}-{key}"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several runs may want it at once
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(_uv(), "venv", "--quiet", "--python", _find(python), str(folder))
            install = _uv(), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")
            if packages:
                _run(*install, *packages)
            if bare:
                _run(*install, "--no-deps", *bare)
            (folder / "complete").touch()
    return str(folder / "bin" / "python")


def _find(version: str) -> str:
    """An interpreter of that version."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    named = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for candidate in [*([named] if named else []), *map(str, kept)]:
        if _version(candidate) == version:
            return candidate
    command = [_uv(), "python", "find", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode == 0 and _version(found.stdout.strip()) == version:
        return found.stdout.strip()
    raise EnvironmentMissingError(f"no Python {version} on this machine")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EnvironmentBrokenError(f"{' '.join(command[1:])} failed: {done.stderr.strip()[-500:]}")


def _uv() -> str:
    beside = Path(sys.prefix) / "bin" / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if not found:
        raise EnvironmentBrokenError("uv is not installed; `make env` brings it")
    return found


def _version(python: str) -> str:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip()

"""Other interpreters for interoperability tests: found, filled once, kept beside the test environment."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OURS = ("numpy", "msgspec", "pyyaml")
"""What the DDS part of this project needs besides cyclonedds."""

SDK = "unitree-sdk2py-dimos==1.0.3"
CPP = "far-unitree-sdk==0.1.8"


def find_python(version: str) -> str:
    """An interpreter of that version ("3.10"); skips the test where there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    named = shutil.which(f"python{version}")
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for candidate in [*([named] if named else []), *map(str, kept)]:
        if _version(candidate) == version:
            return candidate
    found = subprocess.run([_uv(), "python", "find", version], capture_output=True, text=True, check=False)
    if found.returncode == 0 and _version(found.stdout.strip()) == version:
        return found.stdout.strip()
    got = subprocess.run([_uv(), "python", "install", version], capture_output=True, text=True, check=False)
    if got.returncode == 0:
        return version
    pytest.skip(f"no Python {version} on this machine, and uv can't fetch one")


def environment(python: str, *packages: str, bare: tuple[str, ...] = ()) -> str:
    """The interpreter of an environment with these packages; made on first use.

    Args:
        python: version like "3.10".
        packages: installed with what they require.
        bare: installed for their files alone.
    """
    key = hashlib.sha256(repr((python, packages, bare)).encode()).hexdigest()[:12]
    folder = Path(sys.prefix) / "interop" / f"py{python}-{key}"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test runs may want it at once
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(_uv(), "venv", "--quiet", "--python", find_python(python), str(folder))
            install = _uv(), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")
            if packages:
                _run(*install, *packages)
            if bare:
                _run(*install, "--no-deps", *bare)
            (folder / "complete").touch()
    return str(folder / "bin" / "python")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(command[1:])} failed: {done.stderr.strip()[-500:]}")


def _uv() -> str:
    beside = Path(sys.prefix) / "bin" / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if not found:
        pytest.fail("uv is not installed; `make env` brings it")
    return found


def _version(python: str) -> str:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip()

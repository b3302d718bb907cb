"""One trial: the tests against a mutated module, in a forked process, nothing on the disk changed.

The parent imports what costs time and does not depend on the mutated modules; a child takes its copy,
puts the mutated module where the import system looks first, and runs pytest file by file until the
first failure.
Limits are of CPU time, so that a busy machine makes no mutant time out.
"""

import contextlib
import importlib
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants.targets import Target

WARM = ("hypothesis.extra.numpy", "onboard.configs.robot", "onboard.configs.safety")
OPTIONS = (
    *("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=trial"),
    *("-p", "_hypothesis_pytestplugin"),  # the only plugin that is needed, see `warm`
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of hypothesis, imported in advance
)
CPU = "CPU-SECONDS"
MEMORY_BYTES = 3 << 30
WALL_S = 900
LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGALRM)


class Outcome(NamedTuple):
    """How a trial ended."""

    verdict: str
    """`killed`, `survived`, `timeout`, or `no program` where the mutant does not compile."""
    by: str
    """The first test that failed, or what else killed it."""
    cpu_s: tuple[float, ...]
    """Of each file of tests that ended."""


def warm() -> None:
    """Import what every trial needs; call it before the first fork."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in WARM:
        importlib.import_module(name)
    # No shrinking: one failing example is enough. No database: trials must not learn from each other.
    settings.register_profile(
        "trial",
        phases=(Phase.explicit, Phase.generate),
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main([*OPTIONS, "--collect-only", str(Path(__file__).with_name("test_rules.py"))])


def compiled(source: str, path: str) -> CodeType:
    """The code of a module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "is" with a literal
        return compile(source, path, "exec", dont_inherit=True)


def install(module: str, source: str, path: str) -> CodeType:
    """Let `module` be what `source` says for the rest of this process; returns its code.

    Raises:
        RuntimeError: the module was imported already, others may hold on to it.
    """
    if module in sys.modules:
        raise RuntimeError(f"{module} is imported already; a trial needs a process that has not seen it")
    parent, _, name = module.rpartition(".")
    package = importlib.import_module(parent)
    mutant = types.ModuleType(module)
    mutant.__file__, mutant.__package__ = str(Path(path).resolve()), parent
    sys.modules[module] = mutant
    code = compiled(source, path)
    exec(code, mutant.__dict__)
    setattr(package, name, mutant)
    return code


def fork(run: Callable[[], int]) -> tuple[int, Path]:
    """Let a child run `run` and end with its result; its process id and the file that receives its output."""
    handle, name = tempfile.mkstemp(prefix="trial-")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = int(pytest.ExitCode.INTERNAL_ERROR)
        try:
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            code = run()
        except BaseException:
            sys.stdout.write(traceback.format_exc())
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(handle)
    return pid, Path(name)


def take(said: Path) -> str:
    """What a child said; the file goes."""
    text = said.read_text(encoding="utf-8", errors="replace")
    said.unlink()
    return text


def start(target: Target, source: str, limits_s: Sequence[float]) -> tuple[int, Path]:
    """Fork a trial of a module that is imported in its mutated form.

    Args:
        target: what is mutated, and its tests.
        source: the mutated module.
        limits_s: CPU time for each file of tests.

    Returns:
        The process id, and the file that receives what pytest says.
    """
    return fork(lambda: _run(target, source, limits_s))


def _run(target: Target, source: str, limits_s: Sequence[float]) -> int:
    limit_cpu(limits_s[0])
    try:
        install(target.module, source, target.path)
    except Exception as error:
        sys.stdout.write(f"FAILED import of {target.module}: {error!r}\n")
        return 1
    for file, limit_s in zip(target.tests, limits_s, strict=True):
        limit_cpu(limit_s)
        begin = time.process_time()
        if code := int(pytest.main([*OPTIONS, file])):
            return code
        sys.stdout.write(f"\n{CPU} {time.process_time() - begin}\n")
    return 0


def limit_cpu(more_s: float) -> None:
    """Let this process be killed once it has used so much more CPU time."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + more_s), most))
    signal.alarm(WALL_S)


def outcome(status: int, said: str) -> Outcome:
    """Read a finished trial.

    Raises:
        RuntimeError: no test failed, and yet pytest did not pass; that says nothing about the mutant.
    """
    cpu_s = tuple(float(line.split()[1]) for line in said.splitlines() if line.startswith(CPU))
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        verdict = "timeout" if number in LIMIT_SIGNALS else "killed"
        return Outcome(verdict, f"signal {signal.Signals(number).name}", cpu_s)
    code = os.WEXITSTATUS(status)
    if code == pytest.ExitCode.OK:
        return Outcome("survived", "", cpu_s)
    failures = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failures:
        raise RuntimeError(f"pytest ended with code {code} though no test failed:\n{said}")
    return Outcome("killed", failures[0].partition(" ")[2], cpu_s)

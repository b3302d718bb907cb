"""Rules about the tree itself: who may import whom, and that `logging` stays the standard library's."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "onboard"
MODULES = sorted(PACKAGE.rglob("*.py"))

LEAVES = {
    f"onboard.runtime.{name}"
    for name in (
        "age",
        "clock",
        "dds",
        "external_pose",
        "free_domain",
        "gateway_core",
        "idl",
        "interfaces",
        "link",
        "motion_switcher",
        "ports",
        "realtime",
        "remote",
        "shm",
        "wire",
        "wire_layout",
    )
}
"""Modules of the runtime that anyone may import; they import nothing but `configs` and each other."""

MAY_IMPORT = {
    "configs": set(),
    "policies": {"configs"},
    "safety": {"configs"},
    "logging": {"configs"},
    "runtime": {"configs", "policies", "safety", "logging"},
    "sim": {"configs"},
    "analysis": {"configs", "logging", "policies", "sim"},
    "cli": {"configs", "policies", "safety", "logging", "runtime", "sim", "analysis"},
}
"""Room to the rooms that it may import besides itself and the leaves."""

HEAVY = {"mujoco", "matplotlib", "scipy"}
LIGHT_ROOMS = {"configs", "policies", "safety", "logging", "runtime"}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
            found |= {
                f"{node.module}.{alias.name}" for alias in node.names if node.module.startswith("onboard")
            }
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_follow_the_map_of_rooms(path: Path) -> None:
    name = name_of(path)
    parts = name.split(".")
    if len(parts) < 2 or parts[1] == "__main__":
        return
    room = parts[1]
    for imported in imports(path):
        target = imported.split(".")
        if target[0] != "onboard" or len(target) < 2 or imported in LEAVES:
            continue
        if any(imported.startswith(f"{leaf}.") for leaf in LEAVES):
            continue
        if name in LEAVES:
            assert target[1] == "configs" or imported == "onboard.runtime", f"leaf {name} imports {imported}"
        elif target[1] != room and imported not in {"onboard.runtime", "onboard.__version__"}:
            assert target[1] in MAY_IMPORT[room], f"{name} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_robots_side_needs_no_heavy_library(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] in LIGHT_ROOMS:
        assert not {module.split(".")[0] for module in imports(path)} & HEAVY


def test_the_runtime_loads_without_them() -> None:
    code = (
        "import sys\n"
        f"for name in {sorted(HEAVY)!r}: sys.modules[name] = None\n"
        "import onboard.runtime.control, onboard.runtime.gateway, onboard.runtime.launch\n"
        "import onboard.logging.recorder, onboard.logging.rollout, onboard.cli.run\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_three_files_lie_directly_in_the_package() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_file()} == {
        "__init__.py",
        "__main__.py",
        "py.typed",
    }


FOLDERS = sorted({path.parent for path in MODULES} | {ROOT, ROOT / "benchmarks"})
"""`tests` has a folder `logging` too, since it mirrors the package; nothing is run from there."""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_logging_is_the_standard_librarys_from_every_folder(folder: Path) -> None:
    code = "import logging; logging.getLogger('x'); print(logging.__file__)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "onboard" not in result.stdout

"""Nothing of the package listens beyond this machine unless a run names an address for it."""

import ast
from pathlib import Path

import onboard
from onboard.configs.external_pose import LOOPBACK, pose_address
from onboard.runtime.external_pose import UdpPoses

PACKAGE = Path(onboard.__file__).parent

BINDERS = {
    "runtime/claim.py": "a name of this machine, an abstract UNIX socket",
    "runtime/external_pose.py": "poses, at the address that a run names; loopback where it names none",
    "runtime/free_domain.py": "a name of this machine, and a port of loopback to see that it is free",
}
"""The only modules that may bind a socket, and to what."""


def _calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {call.attr for call in calls if isinstance(call, ast.Attribute)}


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    whole = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in (*whole, *parts)}


def test_only_known_modules_bind_a_socket_and_none_serves() -> None:
    modules = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    users = {name for name, path in modules.items() if "socket" in _imports(path)}
    assert {name for name in users if "bind" in _calls(modules[name])} == set(BINDERS)
    assert not [name for name in users if {"listen", "accept"} & _calls(modules[name])]
    servers = {"http", "socketserver", "asyncio", "xmlrpc", "websockets", "multiprocessing"}
    assert not {name for name, path in modules.items() if _imports(path) & servers}


def test_a_pose_is_listened_for_on_loopback_unless_the_run_says_otherwise() -> None:
    assert pose_address("udp:5005") == (LOOPBACK, 5005)
    assert pose_address("udp:0.0.0.0:5005").host == "0.0.0.0"  # asked for by name
    listener = UdpPoses(pose_address("udp:1")._replace(port=0))
    try:
        assert listener.address.host == LOOPBACK
    finally:
        listener.close()


def test_the_lock_of_a_domain_looks_at_loopback_alone() -> None:
    text = (PACKAGE / "runtime" / "free_domain.py").read_text(encoding="utf-8")
    assert 'bind(("127.0.0.1"' in text
    assert "0.0.0.0" not in text

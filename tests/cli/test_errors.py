"""Bad input: one clear line, exit code not 0, nothing left behind."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper

from onboard.cli.main import main
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.shm import default_folder
from tests.cli.deploy import deploy_data
from tests.runtime.flight import POLICY, plan


def one_line(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command; the last line of standard error, which must be the only complaint."""
    code = main(list(arguments))
    captured = capfd.readouterr()
    assert code != 0
    assert "Traceback" not in captured.err
    lines = [line for line in captured.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, captured.err
    assert lines[0].startswith(f"onboard {arguments[0]}: ")
    return lines[0]


def model(path: Path, width: int = 96, actions: int = 29) -> None:
    """A policy network of the given widths that always answers zero."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "w"], ["actions"])],
        "policy",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, actions])],
        [helper.make_tensor("w", TensorProto.FLOAT, [width, actions], np.zeros(width * actions))],
    )
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A policy in the deploy.yaml format, sound until a test spoils it."""
    for folder in ("params", "exported"):
        (tmp_path / folder).mkdir()
    model(tmp_path / "exported" / "policy.onnx")
    (tmp_path / "params" / "deploy.yaml").write_text(yaml.safe_dump(deploy_data()))
    return tmp_path


def spoil(bundle: Path, old: str, new: str) -> None:
    path = bundle / "params" / "deploy.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_bundle_is_sound_before_it_is_spoiled(bundle: Path) -> None:
    assert main(["policy", "show", str(bundle)]) == 0


def test_a_missing_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "absent.onnx" in one_line(capfd, "try", str(tmp_path / "absent.onnx"))


def test_a_name_that_is_no_policy(capfd: pytest.CaptureFixture[str]) -> None:
    assert POLICY in one_line(capfd, "try", "holosoma_loco_pp")


def test_a_wrong_onnx_width(capfd: pytest.CaptureFixture[str], bundle: Path) -> None:
    model(bundle / "exported" / "policy.onnx", width=97)
    line = one_line(capfd, "try", str(bundle))
    assert "96" in line
    assert "97" in line


def test_an_unknown_key(capfd: pytest.CaptureFixture[str], bundle: Path) -> None:
    spoil(bundle, "stiffness:", "stifness:")
    assert "stifness" in one_line(capfd, "try", str(bundle))


def test_missing_gains(capfd: pytest.CaptureFixture[str], bundle: Path) -> None:
    path = bundle / "params" / "deploy.yaml"
    data = yaml.safe_load(path.read_text())
    del data["damping"]
    path.write_text(yaml.safe_dump(data))
    assert "damping" in one_line(capfd, "try", str(bundle))


def test_a_joint_that_does_not_exist(capfd: pytest.CaptureFixture[str], bundle: Path) -> None:
    path = bundle / "params" / "deploy.yaml"
    data = yaml.safe_load(path.read_text())
    data["joint_ids_map"][-1] = 29
    path.write_text(yaml.safe_dump(data))
    assert "29" in one_line(capfd, "try", str(bundle))


def test_a_value_out_of_range_on_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    plan()
    assert "domain" in one_line(capfd, "run", POLICY, "--domain", "999")
    assert "rate_hz" in one_line(capfd, "run", POLICY, "--timing-set", "rate_hz=9000")


def test_a_wrong_interface(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan()
    line = one_line(capfd, "run", POLICY, "--interface", "eth99", "--out", str(tmp_path))
    assert "no network interface 'eth99'" in line
    assert "lo (127.0.0.1)" in line
    assert not list(tmp_path.iterdir())


def test_no_robot_on_the_network(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan()
    with free_domain_id() as domain:
        line = one_line(capfd, "run", POLICY, "--domain", str(domain), "--out", str(tmp_path))
    assert "no state on rt/lowstate within 3 s" in line
    assert "interfaces here: lo" in line
    assert not list(tmp_path.iterdir())
    assert not list(default_folder().glob(f"onboard-{os.getpid()}-*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    mount = shutil.which("mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if not mount or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can't be mounted here (needs root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_before_the_start(capfd: pytest.CaptureFixture[str], small_disk: Path) -> None:
    plan()
    (small_disk / "filler").write_bytes(bytes(60_000))
    with free_domain_id() as domain:
        line = one_line(capfd, "run", POLICY, "--domain", str(domain), "--out", str(small_disk / "out"))
    assert "No space left" in line or "room" in line


def test_a_folder_that_can_not_be_made(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan()
    (tmp_path / "file").write_text("")
    line = one_line(capfd, "run", POLICY, "--out", str(tmp_path / "file" / "out"))
    assert "--out" in line
    assert "can't be made" in line


def test_an_unknown_verb(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["walk"]) == 2
    assert "no verb 'walk'" in capfd.readouterr().err


def test_help_names_every_verb(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capfd.readouterr().out
    for verb in ("demo", "sim", "run", "try", "policy", "log"):
        assert verb in text


@pytest.mark.parametrize("verb", ["demo", "sim", "run", "try"])
def test_every_verb_explains_itself_with_an_example(capfd: pytest.CaptureFixture[str], verb: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"onboard {verb}" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("meteor", "fault 'meteor' is not in the list; the simulator knows: "),
        ("control_kill@3", "fault 'control_kill' is not one of the robot's"),
        ("tick_frozen@soon", "'soon' is no time in seconds; give NAME@SECONDS"),
        ("tick_frozen@-1", "'-1' is no time in seconds"),
    ],
)
def test_a_fault_that_the_simulator_cannot_cause(
    fault: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert message in one_line(capfd, "sim", "--domain", "1", "--fault", fault)

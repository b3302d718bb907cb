"""Strict configuration: every kind of mistake is one line with place, finding and expectation."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.configs.errors import ConfigError
from onboard.configs.loader import apply_override, load, parse_yaml, read_yaml, shipped
from onboard.configs.robot import RobotConfig, load_robot
from onboard.configs.run import RunConfig


@pytest.fixture
def robot_file(tmp_path: Path) -> Path:
    path = tmp_path / "robot.yaml"
    path.write_text(shipped("robots", "g1_29dof").read_text())
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "mode_machine:",
            "mode_machin:",
            "unknown key 'mode_machin' at the top level; did you mean 'mode_machine'?",
        ),
        ("upper_rad:", "uper_rad:", "unknown key 'uper_rad' at joints[0]; did you mean 'upper_rad'?"),
        ("name: g1_29dof\n", "", "missing key 'name' at the top level"),
        ("effort_nm: 88.0, ", "", "missing key 'effort_nm' at joints[0]"),
        ("[2, 5]", "[2, 256]", "mode_machine[1]: Expected `int` <= 255, found 256"),
        ("[2, 5]", "[]", "mode_machine: Expected `array` of length >= 1, found 0 values []"),
        (
            "[0.04525, 0.0, -0.08339]",
            "[0.0, 1.0]",
            "imu.pelvis_m: Expected `array` of length >= 3, found 2 values",
        ),
        ("effort_nm: 88.0", "effort_nm: -1", "joints[0].effort_nm: Expected `float` > 0.0, found -1"),
        (
            "effort_nm: 88.0",
            "effort_nm: strong",
            "joints[0].effort_nm: Expected `float`, got `str`, found 'strong'",
        ),
        (
            "lower_rad: -2.5307",
            "lower_rad: 3.0",
            "left_hip_pitch_joint: lower_rad 3.0 not below 2.8798",
        ),
        ("name: left_hip_roll_joint", "name: left_hip_pitch_joint", "two joints share a name"),
        ("name: g1_29dof\n", "name: g1_29dof\nname: other\n", "key 'name' stands twice"),
    ],
)
def test_a_mistake_in_a_file_is_named(robot_file: Path, old: str, new: str, message: str) -> None:
    edit(robot_file, old, new)
    with pytest.raises(ConfigError) as error:
        load(robot_file, RobotConfig)
    assert message in str(error.value)
    assert str(robot_file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_joint_is_counted(robot_file: Path) -> None:
    lines = robot_file.read_text().splitlines()
    robot_file.write_text("\n".join(lines[:-1]))
    with pytest.raises(ConfigError, match=r"joints: Expected `array` of length >= 29, found 28 values"):
        load(robot_file, RobotConfig)


@pytest.mark.parametrize(
    "text",
    ["a: !!python/object/apply:os.system ['echo x']", "a: !!python/name:os.system", "a: [1", "a: \x00"],
)
def test_tags_and_broken_text_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_yaml(text, "somewhere")
    assert "somewhere" in str(error.value)
    assert "not valid YAML" in str(error.value)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        read_yaml(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_yaml(tmp_path / "binary.yaml")


def test_overrides_pass_the_same_checks() -> None:
    assert load_robot("g1_29dof", ["name=mine", "imu.torso_m=[0, 0, 1]"]).imu.torso_m == (0.0, 0.0, 1.0)
    for override, message in [
        ("nam=3", "did you mean 'name'"),
        ("imu.pelvs_m=[0,0,0]", "unknown key 'pelvs_m' at imu; did you mean 'pelvis_m'?"),
        ("im.pelvis_m=[0,0,0]", "no key 'im'; did you mean 'imu'?"),
        ("name", "expected key=value"),
        ("name.x=1", "holds a value, not keys"),
        ("mode_machine=[-1]", "Expected `int` >= 0"),
    ]:
        with pytest.raises(ConfigError, match=r".") as error:
            load_robot("g1_29dof", [override])
        assert message in str(error.value)


def test_shipped_names_are_listed_and_paths_taken(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="g1_23dof, g1_29dof"):
        load_robot("h1")
    assert shipped("robots", str(tmp_path / "x.yaml")) == tmp_path / "x.yaml"


def test_configurations_are_frozen() -> None:
    with pytest.raises(AttributeError):
        RunConfig(policy="x").policy = "y"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        load_robot("g1_29dof").lower[0] = 0


def test_a_run_configuration_survives_json() -> None:
    config = RunConfig(policy="p", domain=7, script="demo")
    assert msgspec.json.decode(msgspec.json.encode(config), type=RunConfig) == config


@given(st.text(max_size=60))
def test_any_text_is_data_or_one_clear_line(text: str) -> None:
    try:
        parse_yaml(text, "input")
    except ConfigError as error:
        message = str(error)
    else:
        message = "input"
    assert message.startswith("input")
    with pytest.raises(ConfigError):
        apply_override({}, text.replace("=", ""))

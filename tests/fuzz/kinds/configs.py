"""Configuration: every YAML file that a user may give, and the words that name a source of poses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from onboard.configs.bench import load_bench
from onboard.configs.bodies import load_bodies
from onboard.configs.errors import ConfigError
from onboard.configs.external_pose import check_external_pose
from onboard.configs.loader import CONFIG_ROOT, apply_override, load, read_yaml
from onboard.configs.odometry import load_odometry
from onboard.configs.robot import load_robot
from onboard.configs.run import RunConfig
from onboard.configs.safety import damping_kd, load_safety, with_policy_overrides
from onboard.configs.script import load_script
from onboard.configs.sim import load_sim, per_joint
from onboard.policies.bench_signals import plan_course
from onboard.runtime.gateway_core import make_config
from onboard.runtime.script import Script
from onboard.sim.gap import latency_steps
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.mutate import TEXTS, Strategy, blobs, folder, yaml_texts

FILE = "input.yaml"
ROBOT = load_robot("g1_29dof")
MODES = ("damp", "ramp", "hold", "policy", "limp")


def _shipped(*names: str) -> list[Any]:
    return [yaml.safe_load((CONFIG_ROOT / f"{name}.yaml").read_text(encoding="utf-8")) for name in names]


def _kind(name: str, about: str, read: Callable[[str], object], examples: list[Any]) -> Kind:
    def cases_read(place: Path) -> None:
        read(str(place / FILE))

    def cases() -> Strategy:
        return folder({}, input__yaml=yaml_texts(*examples))

    return Kind(f"config-{name}", about, cases, cases_read, where=FILE)


def _robot(path: str) -> None:
    robot = load_robot(path)
    for array in (robot.valid, robot.lower, robot.upper, robot.effort, robot.speed, robot.armature):
        assert array.shape == (29,)
    assert robot.stand_kp.max() <= 500


def _safety(path: str) -> None:
    config = load_safety(path)
    make_config(
        ROBOT,
        damping_kd(config, ROBOT),
        expiry_ms=50.0,
        tilt_limit_rad=config.gateway.tilt_rad,
        range_margin_rad=config.gateway.range_margin_rad,
        kp_max=config.gateway.kp_max,
        kd_max=config.gateway.kd_max,
    )
    with_policy_overrides(config, {"events": {"ROLL": {"limit": 1.0}}}, f"{path}: policy")


def _sim(path: str) -> None:
    named = read_yaml(Path(path))
    if isinstance(named, dict) and not str(named.get("robot")).isidentifier():
        named["robot"] = ROBOT.name  # whoever names a file of their own has it read, wherever it lies
        Path(path).write_text(yaml.safe_dump(named), encoding="utf-8")
    config = load_sim(path)
    for knob in ("command_latency_s", "state_latency_s"):
        latency_steps(config, ROBOT, knob)
    for knob in ("gain", "torque_limit", "friction_nm", "backlash_rad"):
        per_joint(getattr(config.gap, knob), ROBOT, f"{path}: gap.{knob}")
    for pose in config.start_poses.values():
        per_joint(pose, ROBOT, f"{path}: start_poses")


def _bench(path: str) -> None:
    protocol = load_bench(path)
    if protocol.seconds < 600:  # longer ones are sound, but each case would take its time
        try:
            plan_course(protocol, ROBOT, 0.02)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error


def _script(path: str) -> None:
    script = Script(load_script(path))
    for tick in range(40):
        script.advance(tick * 500_000_000, MODES[tick % len(MODES)])


def _run(path: str) -> None:
    load(Path(path), RunConfig)


def _override(place: Path) -> None:
    """`--set KEY=VALUE` in any spelling, on the safety table."""
    data = msgspec.to_builtins(load_safety())
    apply_override(data, (place / "input").read_text(encoding="utf-8", errors="surrogateescape"))
    msgspec.convert(data, dict[str, Any])


def _pose(place: Path) -> None:
    text = (place / "input").read_text(encoding="utf-8", errors="surrogateescape")
    try:
        check_external_pose(text)
    except ValueError as error:  # the schema around it makes a ConfigError of this
        raise ConfigError(str(error)) from error


RUN_EXAMPLE = msgspec.to_builtins(RunConfig("holosoma_loco_ppo")) | {
    "also": [{"policy": "walker", "preset": "rma"}],
    "bench": _shipped("bench/ankles")[0],
    "external_pose": "udp:5005",
}
OVERRIDES = [
    b"events.ROLL.limit=1.0",
    b"limits.rate_rad_s=.inf",
    b"gateway={tilt_rad: 1}",
    b"times.settle_s=[1]",
]
POSES = [b"udp:5005", b"udp:127.0.0.1:5005", b"dds", b"udp:0.0.0.0:1"]

KINDS = [
    _kind("robot", "a robot's description", _robot, _shipped("robots/g1_29dof", "robots/g1_23dof")),
    _kind("safety", "a safety table", _safety, _shipped("safety/g1")),
    _kind("sim", "a simulated robot", _sim, _shipped("sim/g1")),
    _kind("bench", "a bench protocol", _bench, _shipped("bench/ankles", "bench/actuators", "bench/waist")),
    _kind("run", "a whole run", _run, [RUN_EXAMPLE]),
    _kind("script", "an operator's script", _script, _shipped("scripts/demo")),
    _kind("odometry", "numbers of the leg odometry", load_odometry, _shipped("odometry/g1")),
    _kind("bodies", "a robot's links", load_bodies, _shipped("bodies/g1_29dof")),
    Kind(
        "config-override",
        "KEY=VALUE of --set",
        lambda: folder({}, input=blobs(*OVERRIDES, pieces=TEXTS)),
        _override,
    ),
    Kind(
        "config-pose",
        "source of an external pose",
        lambda: folder({}, input=blobs(*POSES, pieces=TEXTS)),
        _pose,
        where="external_pose",
    ),
]

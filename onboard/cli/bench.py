"""`onboard bench`: excitation signals on a hanging robot, without a policy; on DDS or in lock-step."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console as Terminal
from rich.progress import Progress

from onboard.cli.options import parse, write_json
from onboard.cli.run_options import Policy, Repeated, gap_overrides, run_config
from onboard.cli.run_report import read_summary, run_result, show
from onboard.cli.teller import Teller
from onboard.configs.bench import BenchProtocol, load_bench
from onboard.configs.events import Mode
from onboard.configs.robot import RobotConfig, load_robot
from onboard.configs.run import RunConfig
from onboard.configs.script import ScriptConfig, Step
from onboard.logging.rollout import Rollout
from onboard.policies.bundle import load_policy
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.console import Console
from onboard.runtime.launch import launch
from onboard.runtime.parent import Parent
from onboard.runtime.script import Script

EPILOG = """The robot hangs, feet free. Ramp and signals start by themselves; X on the remote stops, B damps.

examples:
  onboard bench left_leg --sim --gain 0.6 --latency-ms 20     a simulated robot that is weak and late
  onboard bench left_leg --interface eth0 --release           on the robot, hanging
  onboard bench my_protocol.yaml --domain 1 --set ramp_s=1.0  on a simulated robot: onboard sim --gantry
  onboard bench legs --sim --like holosoma_loco_ppo           with the gains that the policy will have

shipped: left_leg, left_leg_heldout, legs, ankles, waist, arms, actuators"""

MOVES_RAD = 1e-4
PROGRESS_PERIOD_NS = 500_000_000


@dataclass(frozen=True)
class Args:
    """Play a bench protocol on a hanging robot and record it, with the full-rate state."""

    protocol: Policy
    """Shipped name or YAML path."""
    sim: bool = False
    """Use the in-process simulator in lock-step instead of DDS."""
    gain: float = 1.0
    """With --sim: factor on every joint's torque."""
    latency_ms: float = 0.0
    """With --sim: commands take effect so much later."""
    friction_nm: float = 0.0
    """With --sim: dry friction in every joint."""
    sim_set: Repeated = ()
    """With --sim: key=value of the simulator's configuration."""
    like: str = ""
    """Take the gains of this policy (folder, ONNX file, shipped name): a delta belongs to the gains that it
    was recorded with."""
    preset: str = ""
    """Preset for --like."""
    set: Repeated = ()
    """key=value of the protocol, dotted keys; may be given several times."""
    interface: str = "lo"
    """Network interface of the robot; eth0 on its own computer."""
    domain: int = 0
    """DDS domain id; 0 on the robot."""
    robot: str = "g1_29dof"
    """Robot description: shipped name or YAML path."""
    safety: str = "g1"
    """Safety table: shipped name or YAML path."""
    safety_set: Repeated = ()
    """key=value of the safety table."""
    release: bool = False
    """Release the robot's built-in controller, after a press of START. The robot must hang."""
    out: str = "rollouts"
    """Folder for the rollout."""
    note: str = ""
    """Your own words about this run, kept in the rollout."""
    json: str = ""
    """Write the result to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when the whole protocol was played and nothing stopped it."""
    args = parse(Args, "bench", EPILOG, argv)
    protocol = load_bench(args.protocol, list(args.set))
    if args.like:
        protocol = with_gains_of(protocol, args.like, args.preset, load_robot(args.robot))
    plan = make_plan(bench_config(args, protocol))
    result = _in_lock_step(args, plan, protocol) if args.sim else _on_dds(plan, protocol)
    result["played"] = _played(result, plan, protocol)
    result["ok"] = result["ok"] and result["played"]
    result["tracking_rms_deg"] = tracking_rms_deg(Path(result["rollout"])) if result["rollout"] else {}
    show(f"bench {protocol.name}", result)
    if args.json:
        write_json(args.json, result)
    return 0 if result["ok"] else max(1, result["exit_code"])


def with_gains_of(protocol: BenchProtocol, policy: str, preset: str, robot: RobotConfig) -> BenchProtocol:
    """The protocol with a policy's gains on every joint."""
    contract = load_policy(policy, robot, preset or None).contract
    kp, kd = (dict(zip(contract.joints, gains, strict=True)) for gains in (contract.kp, contract.kd))
    return msgspec.structs.replace(protocol, kp=kp, kd=kd)


def bench_script(protocol: BenchProtocol) -> ScriptConfig:
    """Ramp to the pose, play, and stop in order from the last rest."""
    return ScriptConfig(
        (
            Step(press="start", until="ramp", timeout_s=120.0),
            Step(until="hold", timeout_s=60.0),
            Step(press="go", until="policy", for_s=protocol.seconds - protocol.rest_s / 2),
        )
    )


def tracking_rms_deg(path: Path) -> dict[str, float]:
    """RMS of sent target less position while the signals play, degrees, of every joint that moves."""
    with Rollout(path) as rollout:
        playing = np.flatnonzero(rollout.column("mode") == Mode.POLICY)
        if not playing.size:
            return {}
        sent, q = rollout.column("action_sent")[playing], rollout.column("q")[playing]
        rms = np.degrees(np.sqrt(np.mean((sent - q) ** 2, axis=0)))
        moves = np.ptp(rollout.column("target")[playing], axis=0) > MOVES_RAD
        return {rollout.joint_names[slot]: float(rms[slot]) for slot in np.flatnonzero(moves)}


def bench_config(args: Args, protocol: BenchProtocol) -> RunConfig:
    """The run that plays a protocol."""
    return run_config(
        policy=f"bench_{protocol.name}",
        bench=protocol,
        interface=args.interface,
        domain=args.domain,
        robot=args.robot,
        safety=args.safety,
        safety_overrides=args.safety_set,
        release=args.release,
        gantry=True,
        lowstate=True,
        out=args.out,
        note=args.note,
    )


def _played(result: dict[str, Any], plan: Plan, protocol: BenchProtocol) -> bool:
    """The last segment was played to its end."""
    ticks = (protocol.seconds - protocol.rest_s) * 1e9 / plan.config.period_ns
    return bool(result["rows"] + result["skipped_ticks"] >= ticks - 1)


def _on_dds(plan: Plan, protocol: BenchProtocol) -> dict[str, Any]:
    teller = Teller()
    for note in plan.notes:
        teller(f"note: {note}")
    console = Console(Script(bench_script(protocol)))
    try:
        outcome = launch(plan, console, teller, BenchLine(teller, plan, protocol))
    finally:
        teller.close()
    return run_result(outcome, read_summary(outcome))


def _in_lock_step(args: Args, plan: Plan, protocol: BenchProtocol) -> dict[str, Any]:
    from onboard.cli.recorded_trial import RecordedTrial  # MuJoCo comes with an extra

    overrides = (*gap_overrides(args.gain, args.latency_ms, args.friction_nm), *args.sim_set)
    recorded = RecordedTrial(plan, bench_script(protocol), overrides, Path(args.out), hanging=True)
    with Progress(console=Terminal(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(protocol.name, total=protocol.seconds)

        def show_progress(done_s: float) -> None:
            what = describe_moment(protocol, done_s)
            progress.update(task, completed=done_s, description=f"{protocol.name}: {what}")

        return recorded.run(show_progress)


def describe_moment(protocol: BenchProtocol, done_s: float) -> str:
    """What plays at a time since the beginning, and what is left of it."""
    end_s = 0.0
    for number, segment in enumerate(protocol.segments, 1):
        end_s += protocol.rest_s + segment.for_s
        if done_s < end_s:
            left_s = min(end_s - done_s, segment.for_s)
            return f"{segment.signal} {number}/{len(protocol.segments)}, {left_s:.1f} s left of it"
    return "rest"


class BenchLine:
    """Two lines a second about what plays and what is left; called every few milliseconds."""

    def __init__(self, teller: Teller, plan: Plan, protocol: BenchProtocol) -> None:
        self._teller = teller
        self._period_s = plan.config.period_ns / 1e9
        self._protocol = protocol
        self._due_ns = 0

    def __call__(self, parent: Parent) -> None:
        """Look at the parent's view of control."""
        now = time.monotonic_ns()
        if now < self._due_ns:
            return
        self._due_ns = now + PROGRESS_PERIOD_NS
        control, mode = parent.status.control, parent.status.mode
        if mode is not Mode.POLICY:
            self._teller(f"{self._protocol.name}: {mode.name.lower()}")
            return
        done_s = float(control["policy_rows"]) * self._period_s
        left_s = max(0.0, self._protocol.seconds - done_s)
        self._teller(
            f"{self._protocol.name}: {describe_moment(self._protocol, done_s)}, {left_s:.1f} s in all"
        )

"""`onboard run`: a policy on a robot, real or simulated, over DDS."""

import time
from dataclasses import dataclass
from typing import Literal

from onboard.cli.options import parse, write_json
from onboard.cli.run_options import Policy, Repeated, also, arm, run_config
from onboard.cli.run_report import read_summary, run_result, show
from onboard.cli.teller import Teller
from onboard.configs.events import Tier
from onboard.configs.loader import apply_override
from onboard.configs.run import RunConfig
from onboard.configs.script import load_script
from onboard.runtime.assembly import make_plan
from onboard.runtime.console import Console
from onboard.runtime.keyboard import HELP, Keyboard
from onboard.runtime.launch import launch
from onboard.runtime.parent import Parent
from onboard.runtime.script import Script

EPILOG = """The remote: START ramp, A policy, SELECT next policy, X stop, B damp, Y mark, L1+R1+B limp.

examples:
  onboard sim --domain 1 --released                        in another terminal: a simulated robot
  onboard run holosoma_loco_ppo --domain 1 --keyboard      on that robot, keys of this terminal
  onboard run policy/ --interface eth0 --gantry --release  on the robot, hanging
  onboard run policy/ --interface eth0 --dry               everything except commands"""

STATUS_PERIOD_NS = 1_000_000_000


@dataclass(frozen=True)
class Args:
    """Run a policy: control, gateway and recorder as processes of their own, a rollout at the end."""

    policy: Policy
    """Folder, ONNX file, or shipped name."""
    interface: str = "lo"
    """Network interface of the robot; eth0 on its own computer."""
    domain: int = 0
    """DDS domain id; 0 on the robot."""
    robot: str = "g1_29dof"
    """Robot description: shipped name or YAML path."""
    safety: str = "g1"
    """Safety table: shipped name or YAML path."""
    preset: str = ""
    """Preset for policies that do not say enough themselves."""
    provider: Literal["", "leg_odometry", "external"] = ""
    """What provides base velocity and contact, where a policy reads them and its contract names nobody."""
    external_pose: str = ""
    """Hear the pelvis' pose from outside: udp:HOST:PORT to listen on, or dds (docs/external-pose.md)."""
    format: str = ""
    """Read the policy as this format: contract.yaml, deploy.yaml, metadata, holosoma or preset."""
    also: Repeated = ()
    """A further policy to switch to, PATH or PATH@PRESET; may be given several times."""
    set: Repeated = ()
    """key=value of the contract, dotted keys; may be given several times."""
    safety_set: Repeated = ()
    """key=value of the safety table, dotted keys."""
    timing_set: Repeated = ()
    """key=value of the timing section: rate_hz, spin_us, realtime, prewarm."""
    gantry: bool = False
    """The robot hangs: hold is allowed without a quasi-static stance."""
    dry: bool = False
    """Do everything except command; no command writer exists at all."""
    release: bool = False
    """Release the robot's built-in controller, after a press of START. Gantry or seated only."""
    keyboard: bool = False
    """Let this terminal's keys be the operator's too."""
    script: str = ""
    """Operator script: shipped name or YAML path."""
    residual: str = ""
    """Residual file to run the policy with."""
    residual_set: Repeated = ()
    """key=value of the residual, for example mode=add or through=gains."""
    arm: Literal["", "keep", "drop", "shadow", "blocks"] = ""
    """keep (what a residual does without a word) applies it, shadow only logs it, drop does neither; blocks
    alternates keep and drop in ABBA blocks, for onboard ab --from."""
    block_s: float = 10.0
    """With --arm blocks: length of a stretch with one arm."""
    block_seed: int = 0
    """With --arm blocks: of the order."""
    waive: Repeated = ()
    """A check that failed and shall not refuse this run, such as timing.loop; may be given several times."""
    lowstate: bool = False
    """Record every LowState sample too."""
    out: str = "rollouts"
    """Folder for the rollout."""
    note: str = ""
    """Your own words about this run, kept in the rollout."""
    json: str = ""
    """Write the result to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; the exit code is the outcome's."""
    args = parse(Args, "run", EPILOG, argv)
    plan = make_plan(_config(args))
    teller = Teller()
    keyboard = Keyboard() if args.keyboard else None
    console = Console(
        Script(load_script(args.script)) if args.script else None,
        keyboard,
        terminal_ends=plan.safety.events["TERMINAL_LOST"].severity >= Tier.SETTLE,
    )
    for note in plan.notes:
        teller(f"note: {note}")
    if keyboard is not None:
        teller(HELP)
        keyboard.start()
    try:
        outcome = launch(plan, console, teller, StatusLine(teller))
    finally:
        if keyboard is not None:
            keyboard.close()
        teller.close()
    result = run_result(outcome, read_summary(outcome))
    show(f"run {plan.bundle.name}", result)
    if args.json:
        write_json(args.json, result)
    return outcome.exit_code


class StatusLine:
    """One line a second about what control does."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._due_ns = 0
        self._mode = ""

    def __call__(self, parent: Parent) -> None:
        """Look at the parent's view of control; called every few milliseconds."""
        now, control, mode = time.monotonic_ns(), parent.status.control, parent.status.mode.name.lower()
        if now < self._due_ns and mode == self._mode:
            return
        changed = f" ({control['reason'].item().decode(errors='replace')})" if mode != self._mode else ""
        self._due_ns, self._mode = now + STATUS_PERIOD_NS, mode
        vx, vy, wz = control["velocity"]
        self._teller(
            f"{mode}{changed}  v {vx:+.2f} {vy:+.2f} {wz:+.2f}  tick {control['tick_us']:.0f} us  "
            f"state {1000 * control['state_age_s']:.1f} ms  skipped {control['skipped_ticks']}"
            f"{_losses(parent)}"
        )


def _losses(parent: Parent) -> str:
    """Records that the disk refused, where there are any."""
    lost = int(parent.status.recorder["lost"])
    return f"  {lost} RECORDS LOST, the disk refuses" if lost else ""


def _config(args: Args) -> RunConfig:
    timing: dict[str, object] = {}
    for override in args.timing_set:
        apply_override(timing, override)
    return run_config(
        policy=args.policy,
        interface=args.interface,
        domain=args.domain,
        robot=args.robot,
        safety=args.safety,
        preset=args.preset,
        format=args.format,
        provider=args.provider,
        external_pose=args.external_pose,
        also=also(args.also),
        policy_overrides=args.set,
        safety_overrides=args.safety_set,
        timing=timing,
        gantry=args.gantry,
        dry=args.dry,
        release=args.release,
        keyboard=args.keyboard,
        script=args.script,
        residual=args.residual,
        residual_overrides=args.residual_set,
        arm=arm(args.residual, args.arm),
        block_s=args.block_s,
        block_seed=args.block_seed,
        waive=args.waive,
        lowstate=args.lowstate,
        out=args.out,
        note=args.note,
    )

"""`onboard sim`: a simulated G1 that speaks the robot's DDS topics."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onboard.cli.options import parse, say, write_json
from onboard.cli.run_options import Repeated
from onboard.configs.errors import ConfigError
from onboard.configs.faults import sim_command
from onboard.sim.process import Options, serve
from onboard.sim.summary import Summary

EPILOG = """examples:
  onboard sim --domain 1                            standing on the floor, built-in controller active
  onboard sim --released --gantry --keys            hanging, limp, this terminal's keys are its remote
  onboard sim --fault tick_frozen@20                LowState repeats itself after 20 s
  onboard sim --set gap.gain.left_knee_joint=0.8    a weak knee"""


@dataclass(frozen=True)
class Args:
    """Start a simulated G1 on real DDS: rt/lowstate and rt/secondary_imu at 500 Hz, obeys rt/lowcmd."""

    domain: int = 1
    """DDS domain id; 0 is the real robot's."""
    interface: str = "lo"
    """Network interface."""
    config: str = "g1"
    """Shipped simulator configuration, or a YAML path."""
    gantry: bool = False
    """Start with the pelvis held above the floor."""
    start_pose: str | None = None
    """zero, stand, crouch, or another pose of the configuration."""
    released: bool = False
    """Start with the built-in controller released: limp until a command comes."""
    when_commands_stop: Literal["hold", "damp"] | None = None
    """Hold the last command, or damp after silence.after_s."""
    set: Repeated = ()
    """key=value of the configuration, dotted keys; may be given several times."""
    script: Path | None = None
    """Timed commands, one a line: SECONDS COMMAND (the commands of standard input)."""
    fault: Repeated = ()
    """Fault of the list in docs/safety.md, NAME or NAME@SECONDS; may be given several times."""
    keys: bool = False
    """Read single keys of this terminal instead of lines on standard input."""
    gamepad: Path | None = None
    """Joystick device with an Xbox layout, for example /dev/input/js0."""
    pose_udp: str = ""
    """Send the pelvis' true pose to HOST:PORT, as motion capture would (docs/external-pose.md)."""
    viewer: bool = False
    """Show the robot in a window."""
    duration: float = float("inf")
    """End after so many simulated seconds."""
    realtime: bool = False
    """Ask for SCHED_FIFO, so that other work on this machine can't make the robot's messages late."""
    with_parent: bool = False
    """End when the process that started this one is gone."""
    json: str = ""
    """Write the summary to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when the simulator was started and ended in order."""
    args = parse(Args, "sim", f"{Args.__doc__}\n\n{EPILOG}", argv)
    summary = serve(_options(args), say)
    say(_table(summary))
    if args.json:
        write_json(args.json, dataclasses.asdict(summary))
    return 0


def _options(args: Args) -> Options:
    flags = {
        "gantry.attached=true": args.gantry,
        "builtin.active=false": args.released,
        f"start_pose={args.start_pose}": args.start_pose is not None,
        f"silence.action={args.when_commands_stop}": args.when_commands_stop is not None,
    }
    overrides = tuple(text for text, given in flags.items() if given) + args.set
    return Options(
        domain=args.domain,
        interface=args.interface,
        config=args.config,
        overrides=overrides,
        script=args.script,
        faults=tuple(_fault(text) for text in args.fault),
        keys=args.keys,
        gamepad=args.gamepad,
        pose_udp=args.pose_udp,
        viewer=args.viewer,
        duration_s=args.duration,
        realtime=args.realtime,
        with_parent=args.with_parent,
    )


def _fault(text: str) -> tuple[float, str]:
    """When a fault begins, and the command that causes it."""
    name, at, seconds = text.partition("@")
    try:
        time_s = float(seconds) if at else 0.0
    except ValueError:
        time_s = -1.0
    if not 0.0 <= time_s < float("inf"):
        raise ConfigError(f"--fault {text}: '{seconds}' is no time in seconds; give NAME@SECONDS")
    return time_s, sim_command(name)


def _table(summary: Summary) -> str:
    refused = ", ".join(f"{reason} {count}" for reason, count in summary.refused.items()) or "none"
    lines = [
        f"end: {summary.end} after {summary.simulated_s:.1f} s simulated, real-time factor "
        f"{summary.real_time_factor:.3f}, {summary.skipped_periods} periods left out",
        f"commands: {summary.accepted} accepted, {summary.ignored} ignored by the built-in controller, "
        f"refused: {refused}",
        f"torque limit reached on {100 * summary.torque_saturated:.1f} % of the steps",
    ]
    return "\n".join(lines + [f"warning: {text}" for text in summary.warnings])

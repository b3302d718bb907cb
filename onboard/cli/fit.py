"""`onboard fit`: the delta that makes the simulator behave like the robot that was recorded."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import tyro
from rich.console import Console
from rich.table import Table

from onboard.cli.options import parse, say, write_json
from onboard.configs.errors import ConfigError, OnboardError
from onboard.configs.robot import RobotConfig, load_robot
from onboard.policies.residual.files import write_residual

if TYPE_CHECKING:  # MuJoCo comes with an extra
    from onboard.analysis.fit.fit import Fit
    from onboard.analysis.fit.report import KindReport

EXIT_WORSE = 1
ANKLES = tuple(f"{side}_ankle_{axis}_joint" for side in ("left", "right") for axis in ("pitch", "roll"))
MAX_FRAMES, MAX_HIDDEN = 5, 200
KINDS: dict[str, tuple[Literal["linear", "physical"], ...]] = {
    "linear": ("linear",),
    "physical": ("physical",),
    "both": ("linear", "physical"),
    "network": ("linear",),
}


@dataclass(frozen=True)
class FitArgs:
    """The delta that makes the simulator behave like the robot that was recorded.

    Fits `delta = a * (q_target - q) + b * dq` per joint, recomputed every 20 ms, against whole
    trajectories of bench runs (pelvis on a gantry), together with the command latency; and, for comparison,
    motor gain, friction and rotor inertia. What was not fitted decides: exit code 0 only when the error on
    held-out data dropped.

    With --by-contact one delta is fitted for each contact phase: flight from bench runs, left, right and both
    feet from short windows of walks.

    Examples:
      onboard fit monday.h5 tuesday.h5 --joints left_knee_joint left_ankle_pitch_joint
      onboard fit bench_ankles.h5 walk_a.h5 walk_b.h5 --by-contact --out ankles.yaml
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]
    """Rollouts (.h5), journals, or npz files with t, q, dq, target, quat, gyro. Of several, the last is
    held out; of a single one, the last 30 % of every stretch."""
    held_out: tuple[Path, ...] = ()
    """Logs to hold out instead."""
    joints: tuple[str, ...] = ()
    """Joints to correct; those that the logs move on purpose by default, the ankles for a network."""
    kind: Literal["linear", "physical", "both", "network"] = "both"
    """The linear delta, the physical explanation, both with a comparison, or a network over some frames of
    target error and velocity (of the ankles by default), beside the linear delta that it starts from."""
    by_contact: bool = False
    """One delta for each contact phase; needs logs of a hanging and of a walking robot. Of each kind the last
    log is held out."""
    hidden: int = 24
    """network: hidden units."""
    frames: int = 4
    """network: control periods that it sees, the present one included; at most 5."""
    seed: int = 0
    """network: of its hidden layer."""
    latency: bool = True
    """Identify the command latency too; without, it is absorbed into the coefficients."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("residual.yaml")
    """Residual file to write; the plot goes beside it."""
    gains: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """YAML with kp and kd by joint name or pattern, for logs that do not tell their gains."""
    robot: str = "g1_29dof"
    """Robot description."""
    json: str = ""
    """Write all figures as JSON there; `-` is standard output."""


def run(argv: list[str]) -> int:
    """Run the verb."""
    args = parse(FitArgs, "fit", FitArgs.__doc__ or "", argv)
    try:
        from onboard.analysis.fit import fit as fitting
        from onboard.analysis.fit.plot import plot_fit
        from onboard.analysis.fit.reading import load_gains
        from onboard.analysis.fit.report import report
    except ModuleNotFoundError as error:
        raise OnboardError(
            f"fitting needs {error.name}; install it with: pip install 'onboard[sim,analysis]'"
        ) from error
    _check(args)
    robot = load_robot(args.robot)
    wish = fitting.Wish(
        logs=args.logs,
        held_out=args.held_out,
        joints=args.joints or (ANKLES if args.kind == "network" else ()),
        kinds=KINDS[args.kind],
        latency=args.latency,
        gains=None if args.gains is None else load_gains(args.gains, robot),
    )
    if args.by_contact:
        from onboard.cli.fit_contact import run_by_contact

        return 0 if run_by_contact(args, wish, robot) else EXIT_WORSE
    data = fitting.gather(wish, robot)
    say(
        f"fitting {len(data.slots)} joints to {sum(t.seconds for t in data.fitted):.1f} s, "
        f"{sum(t.seconds for t in data.held_out):.1f} s held out"
    )
    fitted = fitting.fit(data, wish, robot, say)
    figures = report(fitted, robot)
    files = {
        f"{each.kind} plot": str(plot_fit(fitted, each, robot, _plot_path(args.out, each.kind)))
        for each in fitted.explained
    }
    explanations = dict(figures.explanations)
    warnings = [*figures.warnings, *_write(args, fitted, robot, explanations, files)]
    judged = explanations.get("network") or explanations.get("linear") or explanations["physical"]
    if args.json:
        result = msgspec.structs.replace(figures, explanations=explanations, warnings=warnings)
        write_json(args.json, {**msgspec.to_builtins(result), "files": files})
    for warning in warnings:
        say(f"warning: {warning}")
    if args.json != "-":
        _show(explanations, figures.better if args.kind == "both" else "", files)
    return 0 if judged.heldout_after_deg < judged.heldout_before_deg else EXIT_WORSE


def _check(args: FitArgs) -> None:
    if not args.out.parent.is_dir():
        raise ConfigError(f"--out {args.out}: its folder does not exist; make it or name another")
    if args.by_contact and args.kind == "physical":
        raise ConfigError("--by-contact --kind physical: contact changes no motor; leave one of them out")
    if not 1 <= args.frames <= MAX_FRAMES:
        raise ConfigError(f"--frames {args.frames}: a network sees 1 to {MAX_FRAMES} control periods")
    if not 1 <= args.hidden <= MAX_HIDDEN:
        raise ConfigError(f"--hidden {args.hidden}: 1 to {MAX_HIDDEN} units; each costs a simulation a joint")


def _write(
    args: FitArgs,
    fitted: "Fit",
    robot: RobotConfig,
    explanations: dict[str, "KindReport"],
    files: dict[str, str],
) -> list[str]:
    """Write the residual, fitting its network first where one is wanted; what there is to warn of."""
    from onboard.analysis.fit.report import residual

    if args.kind == "network":
        return _network(args, fitted, robot, explanations, files)
    found = residual(fitted, robot, args.out.stem)
    if found is not None:
        files["residual"] = str(write_residual(found, args.out))
    return []


def _network(
    args: FitArgs,
    fitted: "Fit",
    robot: RobotConfig,
    explanations: dict[str, "KindReport"],
    files: dict[str, str],
) -> list[str]:
    from onboard.analysis.fit.network import fit_network
    from onboard.analysis.fit.network_file import write_network_residual
    from onboard.analysis.fit.report import network_figures

    linear = fitted.explained[0]
    network = fit_network(
        fitted,
        linear,
        hidden=args.hidden,
        frames=args.frames,
        seed=args.seed,
        progress=lambda iteration, rms_deg: say(f"network: iteration {iteration}, {rms_deg:.3f} deg RMS"),
    )
    explanations["network"] = network_figures(fitted, network, robot)
    written = write_network_residual(fitted, network, robot, args.out)
    files |= {"residual": str(args.out), "network": str(args.out.with_suffix(".onnx"))}
    warnings = []
    if network.held_out.after_deg >= linear.held_out.after_deg:
        warnings.append("the network describes the held-out data no better than the linear delta: use that")
    if written.mode == "add":
        warnings.append("the network is too steep for a fixed point, so its mode is add, for simulators")
    return warnings


def _show(explanations: dict[str, "KindReport"], better: str, files: dict[str, str]) -> None:
    from onboard.analysis.fit.report import headline

    console = Console(highlight=False)
    for kind, each in explanations.items():
        console.print(_table(kind, each.coefficients, msgspec.to_builtins(each.joints)))
    sys.stdout.writelines(f"{file}\n" for file in files.values())
    if better:
        sys.stdout.write(f"better on held-out data: {_verdict(better)}\n")
    sys.stdout.writelines(f"{headline(kind, each)}\n" for kind, each in explanations.items())


def _plot_path(out: Path, kind: str) -> Path:
    return out.with_name(f"{out.stem}_{kind}.png")


def _verdict(better: str) -> str:
    return {
        "linear": "the delta",
        "physical": "gain, friction and inertia; put them into the simulator before a residual",
        "equal": "neither, within 5 %; the physical one is easier to check",
    }[better]


def _table(
    kind: str, coefficients: dict[str, dict[str, float]], joints: dict[str, dict[str, float]]
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=kind, title_justify="left")
    table.add_column("joint")
    for knob in next(iter(coefficients.values())):
        table.add_column(knob, justify="right")
    for side in ("fitted", "held out"):
        table.add_column(f"{side} (deg)", justify="right")
    for joint, values in coefficients.items():
        errors = joints[joint]
        table.add_row(
            joint,
            *(f"{value:.3f}" for value in values.values()),
            f"{errors['before_deg']:.2f} -> {errors['after_deg']:.2f}",
            f"{errors['heldout_before_deg']:.2f} -> {errors['heldout_after_deg']:.2f}",
        )
    return table

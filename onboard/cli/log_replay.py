"""`onboard log replay`: the observation rebuilt, the policy run again, the run in the simulator."""

import contextlib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from onboard.analysis.replay import bring_to, replay
from onboard.cli.logged_policies import changed_models, logged_config, logged_policies
from onboard.cli.options import parse, say, write_json
from onboard.configs.errors import ConfigError, OnboardError
from onboard.configs.run import RunConfig
from onboard.logging.rollout import Rollout
from onboard.policies.policy import Policy

EXIT_DIFFERS = 1


@dataclass(frozen=True)
class ReplayArgs:
    """Rebuild the observations from the logged states, run the policy again, compare with the log.

    On the machine that recorded, observations must be equal bit by bit and actions within 1e-6; on
    another, within 1e-6 and 1e-4. So it also is a check before a run on a new machine, or of an exported
    policy against the one that was run. Exit code 1: something differs, or nothing could be compared.

    With --sim, the run is also repeated in the simulator from a logged state on.

    Example: onboard log replay rollouts/20260808T120000Z_g1_29dof_walk_none.h5 --sim both
    """

    file: tyro.conf.Positional[Path]
    """Rollout (.h5) or journal."""
    policy: str = ""
    """Policy to check instead of the run's first one: folder, ONNX file or shipped name."""
    preset: str = ""
    """Preset for --policy."""
    sim: Literal["none", "open", "closed", "both"] = "none"
    """open sends the sent targets again, closed lets the policy act on the simulator's states."""
    start_s: float = 0.0
    """Start of the simulation, from the policy's first row."""
    seconds: float = 5.0
    """Length of the simulation, at most."""
    held: bool = False
    """The robot hung in a gantry (assumed of bench runs)."""
    view: bool = False
    """Watch the simulation in a window."""
    out: Path | None = None
    """PNG of the drift; beside the rollout by default."""
    unchecked: bool = False
    """Skip the checksum, for files that were changed on purpose."""
    json: str = ""
    """Write the result as JSON there; `-` is standard output."""


def run(argv: list[str]) -> int:
    """Run the verb."""
    args = parse(ReplayArgs, "log replay", ReplayArgs.__doc__ or "", argv)
    result: dict[str, Any] = {"file": str(args.file), "policies": [], "drift": {}}
    lines: list[str] = []
    with Rollout(args.file, check=not args.unchecked) as rollout:
        config = logged_config(rollout)
        policies = logged_policies(rollout, config, args.policy, args.preset)
        _tell_changes(rollout, policies, config)
        found = [replay(rollout, index, policy) for index, policy in policies.items()]
        result["policies"] = [{**asdict(parity), "holds": parity.holds} for parity in found]
        lines += [parity.describe() for parity in found]
        if not found:
            lines.append(f"{args.file}: no policy ran that could be run again")
        if args.sim != "none":
            _simulate(rollout, args, policies.get(0), config.bench is not None or args.held, result, lines)
    if args.json:
        write_json(args.json, result)
    if args.json != "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
    ran = [parity for parity in found if parity.rows]
    return 0 if all(parity.holds for parity in ran) and (ran or args.sim != "none") else EXIT_DIFFERS


def _tell_changes(rollout: Rollout, policies: dict[int, Policy], config: RunConfig) -> None:
    for index, policy in policies.items():
        if changed := changed_models(rollout, index, policy, config):
            names = ", ".join(changed)
            say(f"{policy.bundle.name}: {names} differs from the file that was run, or is not there")


def _simulate(
    rollout: Rollout,
    args: ReplayArgs,
    policy: Policy | None,
    held: bool,
    result: dict[str, Any],
    lines: list[str],
) -> None:
    try:
        from onboard.analysis.replay_plot import plot_drift
        from onboard.analysis.replay_sim import closed_loop, open_loop, stretch
        from onboard.analysis.replay_view import Window
    except ModuleNotFoundError as error:
        raise OnboardError(
            f"--sim needs {error.name}; install it with: pip install 'onboard[sim,analysis]'"
        ) from error
    part = stretch(rollout, args.start_s, args.seconds, held=held)
    drifts = {}
    with contextlib.ExitStack() as stack:
        watch = stack.enter_context(Window(rollout.period_s)) if args.view else lambda physics: None
        if args.sim in {"open", "both"}:
            drifts["open loop"] = open_loop(part, watch)
        if args.sim in {"closed", "both"}:
            if policy is None:
                raise ConfigError(f"--sim {args.sim}: a bench run has no policy; use --sim open")
            bring_to(rollout, 0, policy, part.first)
            drifts["closed loop"] = closed_loop(part, policy, watch)
    for name, drift in drifts.items():
        result["drift"][name] = {
            "rms_rad": drift.at_marks(),
            "apart_s": drift.apart_s,
            "fallen_s": drift.fallen_s,
        }
        marks = ", ".join(f"{value:.3f} after {mark} s" for mark, value in drift.at_marks().items())
        fall = "" if drift.fallen_s is None else f"; falls after {drift.fallen_s:.2f} s"
        lines.append(f"simulator, {name}: joints differ by (rad RMS) {marks or 'nothing yet'}{fall}")
    out = args.out or args.file.with_name(f"{args.file.stem}_replay.png")
    title = f"{args.file.name}, from {args.start_s:g} s on"
    result["plot"] = str(plot_drift(drifts, rollout.joint_names, title, out))
    lines.append(result["plot"])

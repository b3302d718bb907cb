"""`onboard try`: policies in the in-process simulator, in lock-step, faster than real time."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console as Terminal
from rich.progress import Progress
from rich.table import Table

from onboard.cli.options import parse, say, write_json
from onboard.cli.run_options import Repeated, also, arm, gap_overrides, run_config
from onboard.cli.trial import Trial, Variation, every_direction, standard_walk, whole_motion
from onboard.configs.errors import ConfigError, OnboardError, PolicyError
from onboard.configs.run import RunConfig
from onboard.configs.script import ScriptConfig, load_script
from onboard.policies.contract import Contract
from onboard.policies.loaders.presets import fitting_presets
from onboard.policies.model import read_model
from onboard.runtime.assembly import Plan, make_plan

EPILOG = """examples:
  onboard try holosoma_loco_ppo                     stand 5 s, walk 10 s at 0.5 m/s, stand 5 s
  onboard try my_policy/ --vx 0.3 --perturbed 5 --push-n 60 --json out.json
  onboard try my_dance.onnx --plot dance.png        a tracking policy: the whole motion
  onboard try holosoma_loco_ppo --latency-ms 20 --gain 0.8
  onboard try --all policies/ more/                 everything found there, one line each"""


@dataclass(frozen=True)
class Args:
    """Run policies in lock-step with the simulator; no DDS, no wall clock."""

    policy: str = ""
    """Folder, ONNX file, or shipped name (may stand first, without the flag)."""
    all: tuple[str, ...] = ()
    """Folders to look for policies in; each is tried, one line each."""
    vx: float = 0.5
    """Forward speed of the walk, m/s."""
    protocol: Literal["auto", "walk", "directions", "motion"] = "auto"
    """auto: the whole motion for a tracking policy, else stand, walk, stand."""
    script: str = ""
    """Operator script to play instead: shipped name or YAML path."""
    perturbed: int = 0
    """So many further trials from disturbed starts."""
    push_n: float = 0.0
    """Push with this force for 0.1 s every 3 s."""
    latency_ms: float = 0.0
    """Commands take effect so much later."""
    gain: float = 1.0
    """Factor on every joint's torque."""
    friction_nm: float = 0.0
    """Dry friction in every joint."""
    robot: str = "g1_29dof"
    """Robot description."""
    preset: str = ""
    """Preset for a policy that does not say enough itself."""
    provider: Literal["simulator_truth", "leg_odometry"] = "simulator_truth"
    """What provides base velocity and contact, where a policy reads them and its contract names nobody."""
    format: str = ""
    """Read the policy as this format: contract.yaml, deploy.yaml, metadata, holosoma or preset."""
    also: Repeated = ()
    """A further policy to switch to by script, PATH or PATH@PRESET; may be given several times."""
    residual: str = ""
    """Residual file to run the policy with."""
    residual_set: Repeated = ()
    """key=value of the residual, for example mode=add or through=gains."""
    arm: Literal["", "keep", "drop", "shadow"] = ""
    """keep (what a residual does without a word) applies it, shadow only logs it, drop does neither."""
    set: Repeated = ()
    """key=value of the contract, dotted keys; may be given several times."""
    safety: Repeated = ()
    """key=value of the safety table."""
    sim: Repeated = ()
    """key=value of the simulator's configuration."""
    plot: str = ""
    """Draw the first trial into this PNG."""
    json: str = ""
    """Write the figures to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when every trial stayed up, tripped nothing and followed its command."""
    if argv and not argv[0].startswith("-"):
        argv = ["--policy", *argv]
    args = parse(Args, "try", EPILOG, argv)
    if bool(args.policy) == bool(args.all):
        raise ConfigError("name one policy, or folders with --all; see onboard try --help")
    if args.all:
        return _try_all(args)
    plan = make_plan(_config(args, args.policy, args.preset))
    results, first = try_policy(args, plan)
    result = results[0] | ({"perturbed": results[1:]} if results[1:] else {})
    result["ok"] = all(each["ok"] for each in results)
    _show(plan, results)
    if args.plot:
        from onboard.analysis.trial_plot import plot_trial

        say(f"plot: {plot_trial(first.trace, plan.bundle.name, Path(args.plot))}")
    if args.json:
        write_json(args.json, result)
    return 0 if result["ok"] else 1


def try_policy(args: Args, plan: Plan) -> tuple[list[dict[str, Any]], Trial]:
    """The nominal trial and the perturbed ones: their figures, and the nominal trial itself."""
    script, judge_speed = _protocol(args, plan.bundle.contract, plan.bundle.motion_seconds)
    seeds = [None, *range(1, args.perturbed + 1)]
    trials, results = [], []
    with Progress(console=Terminal(stderr=True), transient=True) as progress:
        seconds = sum(step.for_s for step in script.steps)
        for seed in seeds:
            name = plan.bundle.name if seed is None else f"{plan.bundle.name}, seed {seed}"
            task = progress.add_task(name, total=seconds)
            trial = Trial(plan, script, Variation(seed, args.push_n, _sim(args)))
            trial.run(lambda done, task=task: progress.update(task, completed=done))  # type: ignore[misc]
            trials.append(trial)
            results.append(trial.result(judge_speed=judge_speed))
    return results, trials[0]


def _protocol(args: Args, contract: Contract, motion_s: float | None) -> tuple[ScriptConfig, bool]:
    """What to play, and whether the walking speed is judged."""
    if args.script:
        return load_script(args.script), False
    kind = args.protocol
    if kind == "auto":
        kind = "walk" if contract.motion is None else "motion"
    if kind == "motion":
        if motion_s is None:
            raise ConfigError(f"policy {contract.name} follows no motion; use --protocol walk")
        return whole_motion(motion_s + 1.0), False
    if kind == "directions":
        limits = (contract.commands.lin_vel_x, contract.commands.lin_vel_y, contract.commands.ang_vel_z)
        wanted = (args.vx, 0.3, 0.5)
        vx, vy, wz = (min(v, pair[1]) if pair else v for v, pair in zip(wanted, limits, strict=True))
        return every_direction(vx, vy, wz), False
    nominal = args.vx == 0.5 and args.gain == 1.0 and not (args.latency_ms or args.friction_nm or args.push_n)
    return standard_walk(args.vx), nominal


def _sim(args: Args) -> tuple[str, ...]:
    return (*gap_overrides(args.gain, args.latency_ms, args.friction_nm), *args.sim)


def _config(args: Args, policy: str, preset: str) -> RunConfig:
    return run_config(
        policy=policy,
        robot=args.robot,
        preset=preset,
        format=args.format,
        provider=args.provider,
        also=also(args.also),
        policy_overrides=args.set,
        safety_overrides=args.safety,
        residual=args.residual,
        residual_overrides=args.residual_set,
        arm=arm(args.residual, args.arm),
        gantry=True,
    )


def _try_all(args: Args) -> int:
    """Every policy found in the folders, one line each."""
    found = [path for folder in args.all for path in find_policies(Path(folder))]
    if not found:
        raise ConfigError(f"no policy in {', '.join(args.all)}: no folder there holds an ONNX file")
    lines: dict[str, Any] = {}
    for path in found:
        try:
            plan, preset = _plan_of(args, path)
            results, _ = try_policy(args, plan)
        except OnboardError as error:
            lines[str(path)] = {"ok": False, "refused": str(error)}
            say(f"REFUSED  {path}: {error}")
            continue
        ok = all(each["ok"] for each in results)
        lines[str(path)] = results[0] | {"ok": ok, "preset": preset}
        with_preset = f" (preset {preset})" if preset else ""
        say(f"{'ok      ' if ok else 'NOT ok  '} {path}{with_preset}: {_one_line(results[0])}")
    ok = all(each["ok"] for each in lines.values())
    if args.json:
        write_json(args.json, {"ok": ok, "policies": lines})
    return 0 if ok else 1


def _plan_of(args: Args, path: Path) -> tuple[Plan, str]:
    """A policy's plan and its preset: where a file alone does not say enough and just one fits, that one."""
    try:
        return make_plan(_config(args, str(path), args.preset)), args.preset
    except PolicyError:
        fitting = [] if path.is_dir() or args.preset else fitting_presets(read_model(path).info)
        if len(fitting) != 1:
            raise
    return make_plan(_config(args, str(path), fitting[0])), fitting[0]


def find_policies(folder: Path) -> list[Path]:
    """Policies below a folder: bundles with their own contract, and single ONNX files."""
    bundles = sorted(
        {path.parent for path in folder.rglob("contract.yaml")}
        | {path.parent.parent for path in folder.rglob("deploy.yaml")}
    )
    models = [path for path in sorted(folder.rglob("*.onnx")) if not any(b in path.parents for b in bundles)]
    return [*bundles, *models]


def _one_line(result: dict[str, Any]) -> str:
    parts = [f"{result['seconds']:.1f} s"]
    if result["fell"]:
        parts.append(f"FELL at {result['fall_s']:.1f} s")
    if result["mpjpe_rad"] is not None:
        parts.append(f"joint error {result['mpjpe_rad']:.3f} rad")
    elif result["vx_mean"] is not None:
        parts.append(f"vx {result['vx_mean']:.2f} m/s, walked {result['walked_m']:.2f} m")
    if result["tripped"]:
        parts.append(f"tripped {', '.join(result['tripped'])}")
    return ", ".join(parts)


def _show(plan: Plan, results: list[dict[str, Any]]) -> None:
    table = Table("", *("nominal" if each["seed"] is None else f"seed {each['seed']}" for each in results))
    table.title = f"{plan.bundle.name}: {'ok' if all(each['ok'] for each in results) else 'NOT ok'}"
    for key in results[0]:
        if key not in {"policy", "seed"}:
            table.add_row(key, *(_text(each[key]) for each in results))
    Terminal(file=sys.stderr).print(table)
    for note in plan.notes:
        say(f"note: {note}")


def _text(value: Any) -> str:  # noqa: ANN401 - any plain value of a result
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return f"{value:.3f}" if isinstance(value, float) else str(value)

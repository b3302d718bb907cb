"""`onboard demo`: a trained policy walks a simulated G1, through everything that a real run goes through."""

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onboard.analysis.trial_metrics import FALL_HEIGHT_M, FALL_TILT_RAD
from onboard.cli.options import parse, say, write_json
from onboard.cli.run_options import Repeated, also, run_config
from onboard.cli.run_report import read_summary, run_result, show
from onboard.cli.sim_process import SimProcess
from onboard.cli.teller import Teller
from onboard.configs.events import Mode
from onboard.configs.script import load_script
from onboard.policies.policy import Policy
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.console import Console
from onboard.runtime.dds import RawReader
from onboard.runtime.free_domain import free_domain_id
from onboard.runtime.idl import GROUND_TRUTH_TOPIC, GroundTruth
from onboard.runtime.launch import Outcome, launch
from onboard.runtime.parent import Parent
from onboard.runtime.script import Script
from onboard.runtime.wire import GROUND_TRUTH

EPILOG = """examples:
  onboard demo
  onboard demo --json out.json --out my_rollouts"""


@dataclass(frozen=True)
class Args:
    """Simulator and runtime on loopback DDS: hang, ramp, stand, walk 10 s, stand, stop; rollout and plot."""

    policy: str = "holosoma_loco_ppo"
    """The walking policy: folder, ONNX file, or shipped name."""
    preset: str = ""
    """Preset for a policy that does not say enough itself."""
    provider: Literal["", "leg_odometry"] = ""
    """What provides base velocity and contact, where the policy reads them and its contract names nobody."""
    also: Repeated = ()
    """A further policy that the script may switch to, PATH or PATH@PRESET."""
    script: str = "demo"
    """Operator script: shipped name or YAML path."""
    min_walk_m: float = 3.0
    """How far it must get for the demo to be ok; 0 for a script that does not walk."""
    out: str = "rollouts"
    """Folder for the rollout and the plot."""
    json: str = ""
    """Write the result to this file (- for standard output)."""


def run(argv: list[str]) -> int:
    """Entry of the verb; 0 when the robot walked far enough, did not fall and stopped in order."""
    args = parse(Args, "demo", EPILOG, argv)
    with free_domain_id() as domain, tempfile.TemporaryDirectory() as folder:
        config = run_config(
            policy=args.policy,
            preset=args.preset,
            provider=args.provider,
            also=also(args.also),
            domain=domain,
            script=args.script,
            out=args.out,
            gantry=True,
            release=True,
        )
        plan = make_plan(config)
        teller = Teller()
        teller(f"a simulated G1 on DDS domain {domain}, loopback; {plan.bundle.name} will walk it")
        hanging = ["--domain", str(domain), "--gantry", "--start-pose", "crouch"]
        with SimProcess(hanging, Path(folder) / "sim.json") as sim:
            outcome, hands = _run(plan, sim, teller)
        teller.close()
    result = _result(outcome, hands, args.min_walk_m)
    show("demo", result)
    if args.json:
        write_json(args.json, result)
    return 0 if result["ok"] else max(1, outcome.exit_code)


def _run(plan: Plan, sim: SimProcess, teller: Teller) -> tuple[Outcome, "Hands"]:
    hands = Hands(sim, stance_height_m(plan), teller)
    console = Console(Script(load_script(plan.config.script)))
    outcome = launch(plan, console, teller, hands, lambda: sim.tell("press start"))
    return outcome, hands


def stance_height_m(plan: Plan) -> float:
    """Height of the pelvis when the robot stands in the policy's start pose."""
    from onboard.configs.sim import load_sim
    from onboard.sim.physics import Physics

    physics = Physics(load_sim("g1", [f"robot={plan.config.robot}"]))
    physics.reset(Policy(plan.bundle, plan.robot).start_pose)
    return float(physics.truth().position_m[2])


class Hands:
    """The people beside the robot: they work the gantry and watch where it goes.

    Called every few milliseconds with the parent; measures in mode policy, until the stop.

    Attributes:
        fell: it fell while the policy was in charge.
        walked_m: horizontal distance between begin and end of the policy.
    """

    def __init__(self, sim: SimProcess, stance_m: float, teller: Teller) -> None:
        self._sim = sim
        self._stance_m = stance_m
        self._teller = teller
        self._truth: RawReader | None = None
        self._mode = Mode.DAMP
        self._start: np.ndarray | None = None
        self._end: np.ndarray | None = None
        self._vx = 0.0
        self.fell = False

    @property
    def walked_m(self) -> float:
        """Horizontal distance between begin and end of the policy."""
        if self._start is None or self._end is None:
            return 0.0
        return math.dist(self._start[:2], self._end[:2])

    def __call__(self, parent: Parent) -> None:
        """Look, act on a change of mode, measure."""
        if self._truth is None:
            self._truth = parent.dds.reader(GROUND_TRUTH_TOPIC, GroundTruth)
        mode = parent.status.mode
        self._tell(parent, mode)
        if mode is not self._mode:
            self._act(mode)
            self._mode = mode
        sample = self._truth.take()
        if sample is not None and mode is Mode.POLICY and not parent.stopping:
            self._measure(np.frombuffer(sample.raw, GROUND_TRUTH)[0])

    def _act(self, mode: Mode) -> None:
        if mode is Mode.HOLD and self._mode is Mode.RAMP:
            self._teller("the gantry comes down")
            self._sim.tell(f"gantry height {self._stance_m:.3f}")
        elif mode is Mode.POLICY:
            self._teller("the gantry lets go")
            self._sim.tell("gantry release")

    def _tell(self, parent: Parent, mode: Mode) -> None:
        """A line for every change of mode and of the velocity command."""
        control = parent.status.control
        if mode is not self._mode:
            self._teller(f"{mode.name.lower()}: {control['reason'].item().decode(errors='replace')}")
        if float(control["velocity"][0]) != self._vx:
            self._vx = float(control["velocity"][0])
            self._teller(f"velocity command {self._vx:.1f} m/s forward")

    def _measure(self, truth: np.void) -> None:
        _, x, y, _ = (float(value) for value in truth["quaternion"])
        tilt = math.acos(max(-1.0, min(1.0, 1.0 - 2.0 * (x * x + y * y))))
        self.fell = self.fell or tilt > FALL_TILT_RAD or float(truth["position"][2]) < FALL_HEIGHT_M
        self._end = truth["position"].copy()
        if self._start is None:
            self._start = self._end


def _result(outcome: Outcome, hands: Hands, min_walk_m: float) -> dict[str, Any]:
    begin = time.monotonic()
    result = run_result(outcome, read_summary(outcome))
    del result["exit_code"]
    plot = _plot(outcome)
    result |= {"fell": hands.fell, "walked_m": hands.walked_m, "plot": plot}
    walked = hands.walked_m >= min_walk_m and not hands.fell
    result["ok"] = outcome.exit_code == 0 and walked and plot is not None
    say(f"plot made in {time.monotonic() - begin:.1f} s")
    return result


def _plot(outcome: Outcome) -> str | None:
    if outcome.rollout is None:
        return None
    from onboard.analysis.plots import plot_rollout

    return str(plot_rollout(outcome.rollout, outcome.rollout.with_suffix(".png")))

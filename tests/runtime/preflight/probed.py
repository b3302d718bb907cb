"""A probe in lock-step, for tests: any part of it, on a simulated robot with any defect."""

from pathlib import Path

import msgspec

from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.configs.bench import BenchProtocol
from onboard.runtime.assembly import make_plan
from onboard.runtime.preflight.gantry import Flown
from onboard.runtime.preflight.probe import probe_protocol, probe_script
from onboard.runtime.remote import ACTIONS
from tests.policies.models import ROBOT


def part_of_the_probe(*joints: str, chirp: str = "left_elbow_joint") -> BenchProtocol:
    """The probe with the segments of these joints and the chirp."""
    protocol = probe_protocol(ROBOT, chirp)
    kept = [part for part in protocol.segments[:-1] if set(joints) & set(part.joints)]
    return msgspec.structs.replace(protocol, segments=(*kept, protocol.segments[-1]))


def fly(protocol: BenchProtocol, folder: Path, *sim: str, damp_at_s: float = float("inf")) -> Flown:
    """Play it on a hanging robot; the remote's damp button is pressed after so many seconds of it."""
    config = run_config(policy="bench_probe", bench=protocol, gantry=True, lowstate=True, out=str(folder))
    recorded = RecordedTrial(make_plan(config), probe_script(protocol), sim, folder, hanging=True)

    def press(seconds: float) -> None:
        if seconds >= damp_at_s:
            robot = recorded.trial.robot
            robot.remote.press(ACTIONS["damp"], robot.physics.time_s + 0.2)

    result = recorded.run(press)
    return Flown(result["ok"], result["end"], Path(result["rollout"]))

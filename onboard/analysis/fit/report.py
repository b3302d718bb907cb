"""What a fit says: figures for machines, one line and warnings for people, the residual file."""

import mujoco
import numpy as np
from msgspec import Struct

import onboard
from onboard.analysis.fit.fit import Explained, Fit
from onboard.analysis.fit.knobs import KNOBS, LATENCY
from onboard.analysis.fit.network import NetworkFit
from onboard.analysis.fit.solve import joint_rms_deg
from onboard.analysis.fit.trajectory import EXCITED_RAD, ON_GROUND, SWING_RAD_S, excited
from onboard.configs.robot import RobotConfig
from onboard.policies.residual.contract import INVERT_A_MIN, Coefficients, Provenance, Residual

EQUAL = 0.05
"""Held-out errors closer than this share do not tell two explanations apart."""


class JointErrors(Struct, frozen=True):
    """RMS errors of one joint, simulator against robot, deg."""

    before_deg: float
    after_deg: float
    heldout_before_deg: float
    heldout_after_deg: float


class KindReport(Struct, frozen=True):
    """One explanation.

    Attributes:
        before_deg ... heldout_after_deg: RMS over all fitted joints.
        latency_s: command latency found; 0 where it was not fitted.
        coefficients: joint to knob to value, in the knob's unit (`knobs.KNOBS`).
        joints: errors by joint.
        iterations, fit_s: of the solver.
    """

    before_deg: float
    after_deg: float
    heldout_before_deg: float
    heldout_after_deg: float
    latency_s: float
    coefficients: dict[str, dict[str, float]]
    joints: dict[str, JointErrors]
    iterations: int
    fit_s: float


class Report(Struct, frozen=True):
    """A fit.

    Attributes:
        logs, heldout_logs: sha256 by file name; the same file in both was split in time.
        simulator: what was fitted.
        explanations: by kind.
        better: which of them describes the held-out data better, `equal`, or the only one.
        warnings: one sentence each.
    """

    logs: dict[str, str]
    heldout_logs: dict[str, str]
    simulator: str
    explanations: dict[str, KindReport]
    better: str
    warnings: list[str]


def report(fit: Fit, robot: RobotConfig) -> Report:
    """The figures of a fit."""
    explanations = {str(explained.kind): kind_report(fit, explained, robot) for explained in fit.explained}
    return Report(
        logs=fit.data.files,
        heldout_logs=fit.data.held_out_files,
        simulator=simulator(fit),
        explanations=explanations,
        better=_better(explanations),
        warnings=[*data_warnings(fit, robot), *(w for e in fit.explained for w in warnings(fit, e, robot))],
    )


def simulator(fit: Fit) -> str:
    """What the robot was compared with, exactly enough to make it again."""
    return f"MuJoCo {mujoco.__version__}, g1_29dof.xml sha256 {fit.model.sha256}, {fit.model.pelvis}"


def network_figures(fit: Fit, found: NetworkFit, robot: RobotConfig) -> KindReport:
    """The figures of a network; its weights stand in its file."""
    sides = [side for each in (found.fitted, found.held_out) for side in (each.before, each.after)]
    errors = [joint_rms_deg(side) for side in sides]
    names = _names(fit, robot)
    return KindReport(
        before_deg=found.fitted.before_deg,
        after_deg=found.fitted.after_deg,
        heldout_before_deg=found.held_out.before_deg,
        heldout_after_deg=found.held_out.after_deg,
        latency_s=found.latency_s,
        coefficients={name: {} for name in names},
        joints={name: JointErrors(*each) for name, *each in zip(names, *errors, strict=True)},
        iterations=found.iterations,
        fit_s=found.seconds,
    )


def headline(kind: str, figures: KindReport) -> str:
    """The fit in one line."""
    return (
        f"{kind}: tracking error, simulator against robot: {figures.before_deg:.2f} -> "
        f"{figures.after_deg:.2f} deg RMS fitted, {figures.heldout_before_deg:.2f} -> "
        f"{figures.heldout_after_deg:.2f} deg held out; latency {figures.latency_s * 1e3:.1f} ms"
    )


def residual(fit: Fit, robot: RobotConfig, name: str) -> Residual | None:
    """The linear explanation as a residual; None where it was not fitted.

    Its mode is `invert`, unless a coefficient can't be inverted: then `add`, for simulators.
    """
    linear = next((explained for explained in fit.explained if explained.kind == "linear"), None)
    if linear is None:
        return None
    figures = kind_report(fit, linear, robot)
    coefficients = {joint: Coefficients(**values) for joint, values in figures.coefficients.items()}
    invertible = all(c.a > INVERT_A_MIN for c in coefficients.values())
    return Residual(
        schema=1,
        name=name,
        kind="linear",
        mode="invert" if invertible else "add",
        unit="rad",
        joints=tuple(coefficients),
        coefficients=coefficients,
        provenance=Provenance(
            made_by=f"onboard fit {onboard.__version__}",
            logs=fit.data.files,
            heldout_logs=fit.data.held_out_files,
            simulator=simulator(fit),
            latency_s=figures.latency_s,
            before_deg=figures.before_deg,
            after_deg=figures.after_deg,
            heldout_before_deg=figures.heldout_before_deg,
            heldout_after_deg=figures.heldout_after_deg,
        ),
    )


def kind_report(fit: Fit, explained: Explained, robot: RobotConfig) -> KindReport:
    """The figures of one explanation."""
    names = _names(fit, robot)
    found = explained.solution.by_knob()
    errors = [
        joint_rms_deg(side)
        for comparison in (explained.fitted, explained.held_out)
        for side in (comparison.before, comparison.after)
    ]
    return KindReport(
        before_deg=explained.fitted.before_deg,
        after_deg=explained.fitted.after_deg,
        heldout_before_deg=explained.held_out.before_deg,
        heldout_after_deg=explained.held_out.after_deg,
        latency_s=explained.solution.latency_s,
        coefficients={
            name: {knob: values[int(column)] for knob, values in found.items()}
            for name, column in zip(names, fit.columns, strict=True)
        },
        joints={name: JointErrors(*each) for name, *each in zip(names, *errors, strict=True)},
        iterations=explained.solution.iterations,
        fit_s=explained.solution.seconds,
    )


def _better(explanations: dict[str, KindReport]) -> str:
    errors = {kind: figures.heldout_after_deg for kind, figures in explanations.items()}
    best = min(errors, key=errors.__getitem__)
    others = [error for kind, error in errors.items() if kind != best]
    return "equal" if any(error <= (1 + EQUAL) * errors[best] for error in others) else best


def data_warnings(fit: Fit, robot: RobotConfig) -> list[str]:
    """What is wrong with data of a hanging robot."""
    found = []
    still = set(fit.data.slots.tolist()) - set(excited(fit.data.fitted).tolist())
    if still:
        names = ", ".join(robot.joint_names[slot] for slot in sorted(still))
        found.append(
            f"{names}: not excited (target moves by less than {EXCITED_RAD} rad); coefficients mean nothing"
        )
    every = (*fit.data.fitted, *fit.data.held_out)
    swing = max(trajectory.gyro_rms_rad_s for trajectory in every)
    if swing > SWING_RAD_S:
        found.append(
            f"the pelvis turned at {swing:.2f} rad/s RMS; the fit follows its rotation alone: use bench runs "
            "on a gantry"
        )
    on_ground = max(trajectory.on_ground for trajectory in every)
    if on_ground > ON_GROUND:
        found.append(
            f"a foot stood on the ground in {on_ground:.0%} of the rows; the fit knows no floor, so its "
            "figures mean nothing there: use bench runs of a hanging robot"
        )
    return found


def warnings(fit: Fit, explained: Explained, robot: RobotConfig) -> list[str]:
    """What is wrong with one explanation."""
    names = dict(zip(fit.columns.tolist(), _names(fit, robot), strict=True))
    solution, kind = explained.solution, explained.kind
    found = []
    for parameter in solution.parameters.at_bounds(solution.scaled):
        knob = KNOBS[parameter.knob]
        joint = "" if parameter.column is None else f" of {names[parameter.column]}"
        found.append(
            f"{kind}: {parameter.knob}{joint} is at its bound ({knob.low:g} to {knob.high:g}); "
            "the simulator differs in something else"
        )
    if not explained.improved:
        found.append(f"{kind}: the held-out error got worse; do not use it, record more or other excitation")
    before, after = (joint_rms_deg(side) for side in (explained.held_out.before, explained.held_out.after))
    worse = [name for name, b, a in zip(names.values(), before, after, strict=True) if a > b]
    if worse and explained.improved:
        found.append(f"{kind}: held-out error got worse at {', '.join(worse)}")
    steep = [names[c] for c, a in solution.by_knob().get("a", {}).items() if a <= INVERT_A_MIN]
    if steep:
        found.append(
            f"{kind}: a <= {INVERT_A_MIN} at {', '.join(steep)} can't be inverted, so the mode is add; "
            f"fix the simulator's gain, friction or {LATENCY} first"
        )
    return found


def _names(fit: Fit, robot: RobotConfig) -> list[str]:
    return [robot.joint_names[int(slot)] for slot in np.asarray(fit.model.slots)[fit.columns]]

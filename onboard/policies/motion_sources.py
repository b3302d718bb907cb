"""Reference motions: read from a file or out of the policy's ONNX, in SDK motor order at the control rate."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import ConfigError, PolicyError
from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.policies.contract import Contract, EmbeddedMotion, Motion
from onboard.policies.layout import terms_of
from onboard.policies.model import Model
from onboard.policies.motion import ROOT_WIDTH, WAIST, MotionFrames
from onboard.policies.motion_bodies import check_bodies
from onboard.policies.motion_files import RawMotion, read_motion
from onboard.policies.resample import resample_linear, resample_rotation
from onboard.policies.rotations import roll_pitch_of, rotate_inverse, torso_from_pelvis, yaw_of
from onboard.policies.session import OnnxSession

Floats = NDArray[np.float64]

FAR = 10**6
"""A frame index beyond every motion; graphs clamp it to their last frame."""

UNIT_MARGIN = 0.01
"""How far the norm of a quaternion in a file may be from 1; files are rounded to a few digits."""

LYING_RAD, UPRIGHT_RAD = 1.0, 0.75
"""A reference that is tilted by more than the first in a tenth of its frames as stated, but by less than the
second with its quaternions read the other way round, was stated the wrong way round. A reference that always
faces the same way stands upright in both, and nothing shows."""

LONGEST = 200_000
"""Frames of a reference: more than an hour at 50 Hz."""

SETTLED = 500
"""So many frames in a row, 10 s at 50 Hz, that equal the last one are taken for the end."""


def load_frames(
    contract: Contract, models: Mapping[str, Model], file: Path | None, robot: RobotConfig
) -> MotionFrames | None:
    """The contract's reference at the control rate; None where it has none.

    Args:
        contract: that describes it.
        models: by graph.
        file: that holds it, where its source is a file.
        robot: whose joints it moves.

    Raises:
        PolicyError: the file is missing, damaged, shorter than a term looks ahead, or of other joints.
    """
    motion = contract.motion
    if motion is None or motion.source == "clock":
        return None
    joints = motion.joints or contract.joints
    if motion.embedded is not None:
        slots = [robot.slot(joint) for joint in joints]
        path = models[motion.embedded.graph].path
        frames = _embedded(motion, motion.embedded, models[motion.embedded.graph], slots)
    else:
        path = file or Path(str(motion.file))
        frames = _from_file(path, motion, read_motion(path, motion, joints), contract.rate_hz, robot)
    _check_horizon(contract, frames, path)
    return frames


def _check_horizon(contract: Contract, frames: MotionFrames, path: Path) -> None:
    terms = [term for graph in contract.graphs for term in terms_of(contract, graph)]
    furthest = max(terms, key=lambda term: term.ahead)
    if len(frames) <= furthest.ahead:
        raise PolicyError(
            f"{path}: the reference is {len(frames)} frames long at {contract.rate_hz:g} Hz, but "
            f"'{furthest.term}' looks {furthest.ahead} ticks ahead; give a longer motion"
        )


def _embedded(motion: Motion, embedded: EmbeddedMotion, model: Model, slots: list[int]) -> MotionFrames:
    """Run the graph once for every frame; the reference does not depend on the observation."""
    arrays = {name: np.zeros(port.size, port.dtype) for name, port in model.info.inputs.items()}
    names = (embedded.joint_pos, embedded.joint_vel, embedded.anchor_quat)
    session = OnnxSession(model.path, arrays, names)
    widths = np.cumsum([model.info.outputs[name].size for name in names])
    if widths[0] != len(slots) or widths[1] != 2 * len(slots):
        raise PolicyError(
            f"{model.path}: '{embedded.joint_pos}' and '{embedded.joint_vel}' are {widths[0]} and "
            f"{widths[1] - widths[0]} wide, but motion.joints names {len(slots)} joints"
        )

    def frame(number: int) -> NDArray[np.float32]:
        arrays[embedded.index][:] = number
        session.run()
        return np.concatenate([session.outputs[name] for name in names]).astype(np.float32)

    rows = _all_frames(frame, model.path)
    if not np.isfinite(rows).all():
        raise PolicyError(f"{model.path}: its reference has numbers that are not finite")
    joint_pos, joint_vel, quats = np.split(rows, widths[:2], axis=1)
    anchor = quats[:, 4 * embedded.anchor_row :][:, :4].astype(np.float64)
    return MotionFrames(
        joint_pos=_to_slots(joint_pos, slots),
        joint_vel=_to_slots(joint_vel, slots),
        anchor_quat=_wxyz(anchor, motion, model.path),
        root=np.full((len(rows), ROOT_WIDTH), np.nan, np.float32),
    )


def _all_frames(frame: Callable[[int], NDArray[np.float32]], path: Path) -> NDArray[np.float32]:
    """Frames (T, N) up to the end, which the file does not state: beyond it the last one is repeated.

    A pose that is held somewhere in the middle may equal the last frame. So the end is only believed
    after `SETTLED` equal frames, and when far beyond, at every power of two, nothing else shows.
    """
    last = frame(FAR)
    rows: list[NDArray[np.float32]] = []
    equal = 0
    while len(rows) < LONGEST:
        rows.append(frame(len(rows)))
        equal = equal + 1 if np.array_equal(rows[-1], last) else 0
        if equal >= SETTLED and _same_beyond(frame, len(rows), last):
            return np.stack(rows[: len(rows) - equal + 1])
    raise PolicyError(f"{path}: the embedded reference does not end; its length can't be found")


def _same_beyond(frame: Callable[[int], NDArray[np.float32]], start: int, last: NDArray[np.float32]) -> bool:
    powers = (2**exponent for exponent in range(start.bit_length(), FAR.bit_length()))
    return all(np.array_equal(frame(number), last) for number in powers)


def _from_file(
    path: Path, motion: Motion, raw: RawMotion, rate_hz: float, robot: RobotConfig
) -> MotionFrames:
    """A file's motion in SDK motor order at the control rate."""
    try:
        slots = [robot.slot(joint) for joint in raw.joints]
    except ConfigError as error:
        raise PolicyError(f"{path}: {error}") from error
    frames = (len(raw.root_pos) - 1) * rate_hz / raw.rate_hz
    if not 1 <= frames <= LONGEST:
        raise PolicyError(
            f"{path}: {len(raw.root_pos)} frames at {raw.rate_hz:g} Hz are {frames:.3g} at {rate_hz:g} Hz, "
            f"expected 2 to {LONGEST}; check both rates"
        )
    unturned = _wxyz(raw.root_quat, motion, path)
    if raw.body_quat is not None:
        bodies = raw.body_quat if motion.quat_order == "wxyz" else np.roll(raw.body_quat, 1, axis=2)
        check_bodies(path, raw, unturned, bodies, robot)
    root_pos = resample_linear(raw.root_pos, raw.rate_hz, rate_hz)
    root_quat = resample_rotation(unturned, raw.rate_hz, rate_hz)
    joints = resample_linear(raw.joint_pos, raw.rate_hz, rate_hz)
    speeds = raw.joint_vel
    if speeds is None or raw.rate_hz != rate_hz:
        speeds = np.gradient(joints, 1.0 / rate_hz, axis=0)
    joint_pos = _to_slots(joints.astype(np.float32), slots)
    anchor = root_quat
    if motion.anchor == "torso":
        waist = joint_pos[:, [robot.joint_names.index(name) for name in WAIST]].astype(np.float64)
        anchor = np.array([torso_from_pelvis(q, *w) for q, w in zip(root_quat, waist, strict=True)])
    return MotionFrames(
        joint_pos=joint_pos,
        joint_vel=_to_slots(speeds.astype(np.float32), slots),
        anchor_quat=anchor,
        root=_root_terms(root_pos, root_quat, rate_hz),
    )


def _root_terms(root_pos: Floats, root_quat: Floats, rate_hz: float) -> NDArray[np.float32]:
    """Velocity in the heading, height, roll, pitch and yaw rate of the root, (T, 6)."""
    velocity = np.gradient(root_pos, 1.0 / rate_hz, axis=0)
    yaw = np.unwrap([yaw_of(quat) for quat in root_quat])
    yaw_rate = np.gradient(yaw, 1.0 / rate_hz)
    rows = []
    for index, quat in enumerate(root_quat):
        heading = (np.cos(0.5 * yaw[index]), 0.0, 0.0, np.sin(0.5 * yaw[index]))
        vx, vy, _ = rotate_inverse(heading, velocity[index])
        rows.append((vx, vy, root_pos[index, 2], *roll_pitch_of(quat), yaw_rate[index]))
    return np.array(rows, np.float32)


def _wxyz(quats: Floats, motion: Motion, path: Path) -> Floats:
    """Quaternions (T, 4) of the reference as w, x, y, z.

    Raises:
        PolicyError: they are not of unit length, or only stand upright in the other order.
    """
    norms = np.linalg.norm(quats, axis=1)
    if np.abs(norms - 1.0).max() > UNIT_MARGIN:
        raise PolicyError(
            f"{path}: the reference's quaternions have norms from {norms.min():.3g} to {norms.max():.3g}, "
            "expected 1: these columns are no quaternions"
        )
    orders = {"xyzw": np.roll(quats, 1, axis=1), "wxyz": quats}
    stated = orders.pop(str(motion.quat_order))
    other, swapped = orders.popitem()
    if _tilt(stated) > LYING_RAD and _tilt(swapped) < UPRIGHT_RAD:
        raise PolicyError(
            f"{path}: read as {motion.quat_order}, the reference lies on its side (tilted by "
            f"{_tilt(stated):.2f} rad and more); as {other} it stands: --set motion.quat_order={other}"
        )
    return stated


def _tilt(quats_wxyz: Floats) -> float:
    """Angle between the body's z axis and the vertical, rad, that a tenth of the frames exceed."""
    cosine = 1.0 - 2.0 * (quats_wxyz[:, 1] ** 2 + quats_wxyz[:, 2] ** 2)
    return float(np.quantile(np.arccos(np.clip(cosine, -1.0, 1.0)), 0.9))


def _to_slots(values: NDArray[np.float32], slots: list[int]) -> NDArray[np.float32]:
    full = np.zeros((len(values), N_JOINTS), np.float32)
    full[:, slots] = values
    return full

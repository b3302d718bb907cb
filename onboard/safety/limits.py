"""What is cut from a target before it is sent, always in the same order.

    finite -> soft range -> rate -> torque -> physical range

The torque limit keeps kp·(target - q) - kd·dq within a share m of what the motor can give, that is
target in q + (kd·dq ± m·tau_max) / kp. The physical range comes last, so it holds whatever else was
asked: the sent target is finite and inside it for any input, NaN and infinities included.
"""

from enum import IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS, RobotConfig
from onboard.configs.safety import TargetLimits

Float32Array = NDArray[np.float32]
Window = tuple[Float32Array, Float32Array]
"""Lowest and highest target, (29,) rad each."""


class Cut(IntFlag):
    """Bits of `limit_mask`: which limit changed a joint's target."""

    RESENT = 1
    """The output was unusable and the previous target was sent again."""
    RANGE = 2
    RATE = 4
    TORQUE = 8
    PHYSICAL = 16


class Bounds(NamedTuple):
    """Limits resolved for one robot and one period; arrays (29,) float32, SDK motor order."""

    lower: Float32Array
    """rad, the joint's physical range"""
    upper: Float32Array
    soft_lower: Float32Array
    soft_upper: Float32Array
    step_rad: np.float32
    """most that a target may move in one tick"""
    torque_nm: Float32Array
    kp_floor: np.float32
    absurd_action: float
    absurd_target_rad: float


def make_bounds(limits: TargetLimits, robot: RobotConfig, period_s: float) -> Bounds:
    """Resolve the configured limits."""
    margin = (robot.upper - robot.lower) * np.float32((1.0 - limits.soft_range) / 2.0)
    return Bounds(
        lower=robot.lower,
        upper=robot.upper,
        soft_lower=robot.lower + margin,
        soft_upper=robot.upper - margin,
        step_rad=np.float32(limits.rate_rad_s * period_s),
        torque_nm=robot.effort * np.float32(limits.torque_share),
        kp_floor=np.float32(limits.kp_floor),
        absurd_action=limits.absurd_action,
        absurd_target_rad=limits.absurd_target_rad,
    )


class Limited:
    """Result and working memory of `limit_target`, overwritten every tick.

    Attributes:
        steps: (5, 29) float32, rad, the target and what each limit made of it, in their order.
        sent: (29,) float32, rad, what to send; the last of the steps.
        changed: (5, 29) which limit changed a joint's target; a row for each bit of `Cut`.
        mask: (29,) uint8, `Cut` bits.
        rate, torque: lowest and highest target that the limit allows.
    """

    def __init__(self) -> None:
        self.steps: Float32Array = np.zeros((5, N_JOINTS), np.float32)
        self.sent: Float32Array = self.steps[-1]
        self.changed: NDArray[np.bool_] = np.zeros((5, N_JOINTS), np.bool_)
        self.mask: NDArray[np.uint8] = np.zeros(N_JOINTS, np.uint8)
        self.rate: Window = (np.zeros(N_JOINTS, np.float32), np.zeros(N_JOINTS, np.float32))
        self.torque: Window = (np.zeros(N_JOINTS, np.float32), np.zeros(N_JOINTS, np.float32))


class Tally:
    """How often, and how far, targets were cut; for the table at the end of a run."""

    def __init__(self) -> None:
        self._ticks = 0
        self._cut_ticks = dict.fromkeys(Cut, 0)
        self._largest_rad = 0.0

    def add(self, target: Float32Array | None, limited: Limited) -> None:
        """Count one tick's result; `target` is what was asked for."""
        self._ticks += 1
        cuts = int(np.bitwise_or.reduce(limited.mask))
        if not cuts:
            return
        for cut in Cut:
            self._cut_ticks[cut] += bool(cuts & cut)
        if target is not None and not cuts & Cut.RESENT:
            self._largest_rad = max(self._largest_rad, float(np.abs(target - limited.sent).max()))

    def summary(self) -> dict[str, float]:
        """Ticks, the share of them that each limit touched, and the largest cut, rad."""
        shares = {str(cut.name).lower(): n / max(self._ticks, 1) for cut, n in self._cut_ticks.items()}
        return {"ticks": self._ticks, **shares, "largest_cut_rad": self._largest_rad}


def usable(values: Float32Array | None, size: int, bound: float) -> bool:
    """True when every one of `size` values is a number no larger than `bound`."""
    if values is None or values.shape != (size,):
        return False
    return bool(np.abs(values).max(initial=0.0) <= bound)  # false for NaN


def resend(previous: Float32Array, out: Limited) -> Float32Array:
    """Send the previous target once more."""
    out.sent[:] = previous
    out.mask[:] = Cut.RESENT
    return out.sent


def limit_target(
    target: Float32Array,
    q: Float32Array,
    dq: Float32Array,
    kp: Float32Array,
    kd: Float32Array,
    previous: Float32Array,
    bounds: Bounds,
    out: Limited,
) -> Float32Array:
    """Apply range, rate, torque and physical range to a usable target.

    Args:
        target: (29,) rad, as the contract asks.
        q: (29,) rad, measured.
        dq: (29,) rad/s, measured.
        kp: (29,) N·m/rad, as they will be sent.
        kd: (29,) N·m·s/rad, as they will be sent.
        previous: (29,) rad, sent one tick ago, finite and inside the physical range.
        bounds: the robot's limits.
        out: receives the result; nothing in it survives from call to call.

    Returns:
        `out.sent`.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # a window of NaN limits nothing: fmax, fmin
        np.subtract(previous, bounds.step_rad, out=out.rate[0])
        np.add(previous, bounds.step_rad, out=out.rate[1])
        _torque_window(q, dq, kp, kd, bounds, out.torque)
        windows = ((bounds.soft_lower, bounds.soft_upper), out.rate, out.torque, (bounds.lower, bounds.upper))
        steps = out.steps
        steps[0] = target
        for before, after, (low, high) in zip(steps, steps[1:], windows, strict=False):
            np.fmax(before, low, out=after)
            np.fmin(after, high, out=after)
    out.changed[Cut.RESENT.bit_length() - 1] = False
    np.not_equal(steps[1:], steps[:-1], out=out.changed[1:])
    out.mask[:] = np.packbits(out.changed, axis=0, bitorder="little")
    return out.sent


def _torque_window(
    q: Float32Array, dq: Float32Array, kp: Float32Array, kd: Float32Array, bounds: Bounds, out: Window
) -> None:
    """Lowest and highest target whose torque the motor can give; infinite where kp is about 0."""
    stiffness = np.maximum(kp, bounds.kp_floor)
    half = bounds.torque_nm / stiffness
    half[kp < bounds.kp_floor] = np.inf
    middle = kd * dq / stiffness + q
    np.subtract(middle, half, out=out[0])
    np.add(middle, half, out=out[1])

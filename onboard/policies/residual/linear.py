"""The linear delta `a·(q_target - q) + b·dq`, as it is or inverted in closed form."""

import numpy as np
from numpy.typing import NDArray

from onboard.policies.residual.contract import Coefficients, Residual
from onboard.policies.residual.delta import Float32Array, Question


def inverse_gains(
    config: Residual, coefficients: dict[str, Coefficients]
) -> tuple[Float32Array, Float32Array]:
    """Gain `g = 1/(1+a)`, capped, and `b`, (n,) each in the order of the mask."""
    a = np.array([coefficients[joint].a for joint in config.joints])
    b = np.array([coefficients[joint].b for joint in config.joints])
    return np.minimum(1 / (1 + a), config.gain_cap).astype(np.float32), b.astype(np.float32)


class LinearDelta:
    """A correction `on_error·(q_target - q) + on_speed·dq`, rad, whatever the mode.

    Added, these are `a` and `b`. The inverse solves `q' + a·(q' - q) + b·dq = q_target`:
    `q' = q + g·(q_target - q - b·dq)` with the gain `g = 1/(1+a)`, which is capped.

    Args:
        config: mode, mask, cap.
        coefficients: by joint, all of the mask.
        slots: (n,) SDK motor indices of the mask.
    """

    known = True
    settled = True

    def __init__(
        self, config: Residual, coefficients: dict[str, Coefficients], slots: NDArray[np.intp]
    ) -> None:
        self._on_error, self._on_speed = np.zeros((2, len(slots)), np.float32)
        if config.mode == "invert":
            gain, b = inverse_gains(config, coefficients)
            self._on_error[:], self._on_speed[:] = gain - 1, -gain * b
        else:
            self._on_error[:] = [coefficients[joint].a for joint in config.joints]
            self._on_speed[:] = [coefficients[joint].b for joint in config.joints]
        self._slots = slots
        self._out, self._speed = np.zeros((2, len(slots)), np.float32)
        self._question: Question | None = None

    def reset(self) -> None:
        """There is nothing to forget."""

    def look(self, question: Question) -> None:
        """Take one tick in."""
        self._question = question

    def correction(self) -> Float32Array:
        """(n,) rad."""
        if self._question is None:
            raise ValueError("correction before look")
        state, slots, out, speed = self._question.asked.state, self._slots, self._out, self._speed
        self._question.target.take(slots, out=out, mode="clip")
        state.q.take(slots, out=speed, mode="clip")
        np.subtract(out, speed, out=out)
        np.multiply(out, self._on_error, out=out)
        state.dq.take(slots, out=speed, mode="clip")
        np.multiply(speed, self._on_speed, out=speed)
        np.add(out, speed, out=out)
        return out

    def remember(self, applied: Float32Array) -> None:
        """There is nothing to remember."""

    def warm(self) -> None:
        """Go through the code once."""
        if self._question is not None:
            self.correction()

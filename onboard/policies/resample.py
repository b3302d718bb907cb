"""Motion data from one frame rate to another: linear on numbers, slerp on rotations."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def resample_linear(values: Floats, from_hz: float, to_hz: float) -> Floats:
    """Values (T, N) at `from_hz` as values at `to_hz` over the same time, ends included where they meet."""
    before, after, share = _positions(len(values), from_hz, to_hz)
    return values[before] * (1.0 - share[:, None]) + values[after] * share[:, None]


def resample_rotation(quats: Floats, from_hz: float, to_hz: float) -> Floats:
    """The same for unit quaternions (T, 4), the shorter way round."""
    before, after, share = _positions(len(quats), from_hz, to_hz)
    a, b = quats[before], quats[after]
    cosine = np.sum(a * b, axis=1)
    b = np.where(cosine[:, None] < 0.0, -b, b)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    sine = np.sin(angle)
    near = sine < 1e-9
    divisor = np.where(near, 1.0, sine)
    weight_a = np.where(near, 1.0 - share, np.sin((1.0 - share) * angle) / divisor)
    weight_b = np.where(near, share, np.sin(share * angle) / divisor)
    mixed = a * weight_a[:, None] + b * weight_b[:, None]
    unit: Floats = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit


def _positions(
    frames: int, from_hz: float, to_hz: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """For every new frame: the old frames before and after it and its share of the way between them."""
    count = int(np.floor((frames - 1) * to_hz / from_hz + 1e-9)) + 1
    position = np.arange(count) * (from_hz / to_hz)
    before = np.minimum(np.floor(position + 1e-9).astype(np.intp), frames - 1)
    return before, np.minimum(before + 1, frames - 1), np.clip(position - before, 0.0, 1.0)

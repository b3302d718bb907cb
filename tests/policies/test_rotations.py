import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from onboard.policies import rotations

ANGLE = st.floats(-3.0, 3.0)
PART = st.floats(-1.0, 1.0)
QUAT = (
    st.tuples(PART, PART, PART, PART)
    .filter(lambda q: math.hypot(*q) > 0.1)
    .map(lambda q: tuple(x / math.hypot(*q) for x in q))
)


def matrix(quat: tuple[float, ...]) -> NDArray[np.float64]:
    """Rotation matrix, written down independently: R = 1 + 2w[u] + 2[u]²."""
    w, x, y, z = quat
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rotation: NDArray[np.float64] = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return rotation


@given(QUAT)
def test_gravity_is_the_downward_axis_in_the_body(quat: tuple[float, ...]) -> None:
    expected = matrix(quat).T @ (0, 0, -1)
    assert rotations.gravity_in_body(quat) == pytest.approx(expected, abs=1e-12)


@given(QUAT, QUAT)
def test_the_product_composes_rotations(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    assert matrix(rotations.multiply(a, b)) == pytest.approx(matrix(a) @ matrix(b), abs=1e-12)
    assert matrix(rotations.conjugate(a)) == pytest.approx(matrix(a).T, abs=1e-12)


@given(QUAT, st.tuples(ANGLE, ANGLE, ANGLE))
def test_a_world_vector_seen_from_a_body(quat: tuple[float, ...], vector: tuple[float, ...]) -> None:
    assert rotations.rotate_inverse(quat, vector) == pytest.approx(matrix(quat).T @ vector, abs=1e-12)


@given(QUAT)
def test_two_columns_are_flattened_row_by_row(quat: tuple[float, ...]) -> None:
    assert rotations.first_two_columns(quat) == pytest.approx(matrix(quat)[:, :2].reshape(-1), abs=1e-12)


@given(ANGLE, st.floats(-1.4, 1.4), ANGLE)
def test_euler_angles_come_back(roll: float, pitch: float, yaw: float) -> None:
    quat = rotations.multiply(
        rotations.multiply(rotations.about_z(yaw), (math.cos(pitch / 2), 0, math.sin(pitch / 2), 0)),
        (math.cos(roll / 2), math.sin(roll / 2), 0, 0),
    )
    assert rotations.roll_pitch_of(quat) == pytest.approx((roll, pitch), abs=1e-9)
    assert rotations.yaw_of(quat) == pytest.approx(yaw, abs=1e-9)


@given(QUAT, ANGLE, ANGLE, ANGLE)
def test_the_waist_turns_about_z_then_x_then_y(
    pelvis: tuple[float, ...], yaw: float, roll: float, pitch: float
) -> None:
    cy, sy, cr, sr = math.cos(yaw), math.sin(yaw), math.cos(roll), math.sin(roll)
    cp, sp = math.cos(pitch), math.sin(pitch)
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    torso = rotations.torso_from_pelvis(pelvis, yaw, roll, pitch)
    assert matrix(torso) == pytest.approx(matrix(pelvis) @ about_z @ about_x @ about_y, abs=1e-9)

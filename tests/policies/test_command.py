import numpy as np
import pytest

from onboard.policies.command import MotionCommand, clamp_velocity
from onboard.policies.contract import Commands


def test_views_and_log_order_are_one_memory() -> None:
    command = MotionCommand(height_m=0.75)
    command.set_velocity(0.1, -0.2, 0.3)
    command.waist_rad[:] = (0.4, 0.5, 0.6)
    command.height_m = 0.7
    assert command.values == pytest.approx([0.1, -0.2, 0.3, 0.7, 1.0, 0.4, 0.5, 0.6])
    assert command.height_m == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("velocity", "stand"), [((0, 0, 0), 0.0), ((0.01, 0, 0), 1.0), ((0, -0.1, 0), 1.0), ((0, 0, 0.2), 1.0)]
)
def test_the_stand_flag_follows_the_velocity(velocity: tuple[float, float, float], stand: float) -> None:
    command = MotionCommand()
    command.stand = 1.0 - stand
    command.set_velocity(*velocity)
    assert command.stand == stand


def test_a_velocity_is_cut_to_what_the_contract_states() -> None:
    velocity = np.array([2.0, -2.0, 9.0], np.float32)
    clamp_velocity(velocity, Commands(lin_vel_x=(-0.5, 1.0), lin_vel_y=(-0.25, 0.25)))
    assert velocity.tolist() == [1.0, -0.25, 9.0]

import pytest

from onboard.configs.events import Event, Tier, bits
from onboard.safety.events import ATTITUDE, DAMPED_IS_NORMAL, FALLS, FROM_STATE, POLICY, Flag, next_flag

ROLL, FALL, STOP = bits(Event.ROLL), bits(Event.FALL), bits(Event.EMERGENCY_STOP)
LOST = bits(Event.PARENT_LOST)


def test_the_groups_hold_what_their_names_say() -> None:
    assert bits(Event.ROLL, Event.PITCH, Event.TILT) == ATTITUDE
    assert bits(Event.FALL, Event.FALL_NO_RECOVERY) == FALLS
    assert bits(Event.POLICY_BAD_ONCE, Event.POLICY_BAD_TWICE) == POLICY
    assert not FROM_STATE & POLICY
    raised_elsewhere = {
        *("STATE_OLD", "STATE_STALE", "CRC_BAD", "CRC_RATE", "TICK_NOT_ADVANCING", "RESIDUAL_DROPPED"),
        *("OVERRUN", "OVERRUN_REPEATED", "PROVIDER_OLD", "RECORDER_BEHIND", "RECORDER_DEAD", "DISK_LOW"),
        *("GATEWAY_LOST", "GATEWAY_LATCHED", "SECOND_PUBLISHER", "OPERATOR_STOP", "EMERGENCY_STOP"),
        *("TERMINAL_LOST", "PARENT_LOST", "MOTION_FINISHED"),
    }
    assert {event.name for event in Event if not (FROM_STATE | POLICY) >> event & 1} == raised_elsewhere


def test_a_damped_robot_is_still_watched_for_heat_faults_and_everything_outside_it() -> None:
    assert {event.name for event in Event if DAMPED_IS_NORMAL >> event & 1} == {
        *("ROLL", "PITCH", "TILT", "FALL", "FALL_NO_RECOVERY", "ANGULAR_RATE", "JOINT_SPEED"),
        *("JOINT_NEAR_LIMIT", "JOINT_PAST_LIMIT", "TORQUE_HIGH", "TORQUE_OVER", "GATEWAY_LATCHED"),
    }


@pytest.mark.parametrize(
    ("flag", "fired", "latched", "tier", "wanted"),
    [
        (Flag.NORMAL, 0, 0, Tier.NONE, Flag.NORMAL),
        (Flag.NORMAL, 0, 0, Tier.WARN, Flag.NORMAL),
        (Flag.NORMAL, LOST, LOST, Tier.SETTLE, Flag.OTHER_STOP),
        (Flag.NORMAL, LOST, LOST, Tier.DAMP, Flag.OTHER_STOP),
        (Flag.NORMAL, FALL, FALL, Tier.DAMP, Flag.FALL),
        (Flag.NORMAL, FALL | STOP, FALL | STOP, Tier.DAMP, Flag.EMERGENCY_STOP),
        (Flag.EMERGENCY_STOP, FALL, FALL | STOP | ROLL, Tier.DAMP, Flag.EMERGENCY_STOP),
        (Flag.FALL, STOP, FALL | STOP, Tier.DAMP, Flag.FALL),
        (Flag.FALL, 0, FALL, Tier.DAMP, Flag.FALL),
        (Flag.OTHER_STOP, 0, LOST, Tier.DAMP, Flag.OTHER_STOP),
        (Flag.OTHER_STOP, STOP, STOP | LOST, Tier.DAMP, Flag.OTHER_STOP),
        (Flag.OTHER_STOP, FALL, LOST | FALL, Tier.DAMP, Flag.OTHER_STOP),
        (Flag.OTHER_STOP, FALL, ROLL | FALL, Tier.DAMP, Flag.FALL),
        (Flag.OTHER_STOP, ROLL, ROLL, Tier.DAMP, Flag.OTHER_STOP),
    ],
)
def test_the_flag_keeps_the_first_cause(
    flag: int, fired: int, latched: int, tier: Tier, wanted: Flag
) -> None:
    assert next_flag(flag, fired, latched, tier) == wanted

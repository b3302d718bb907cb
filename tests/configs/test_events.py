from onboard.configs.events import Event, Mode, Tier, bits, names


def test_bit_numbers_are_stable() -> None:
    """Masks in rollouts that exist must stay readable: append, never renumber."""
    assert [event.name for event in sorted(Event)] == [
        "ROLL",
        "PITCH",
        "TILT",
        "FALL",
        "FALL_NO_RECOVERY",
        "ANGULAR_RATE",
        "JOINT_SPEED",
        "JOINT_NEAR_LIMIT",
        "JOINT_PAST_LIMIT",
        "TORQUE_HIGH",
        "TORQUE_OVER",
        "CASING_HOT",
        "CASING_OVERHEATED",
        "WINDING_HOT",
        "WINDING_OVERHEATED",
        "MOTOR_FAULT",
        "MOTOR_FAULT_SEVERE",
        "RAMP_TRACKING",
        "RAMP_TORQUE",
        "STATE_OLD",
        "STATE_STALE",
        "CRC_BAD",
        "CRC_RATE",
        "TICK_NOT_ADVANCING",
        "STATE_NOT_FINITE",
        "QUATERNION_NORM",
        "MODE_MACHINE_CHANGED",
        "REMOTE_LOST",
        "POLICY_BAD_ONCE",
        "POLICY_BAD_TWICE",
        "RESIDUAL_DROPPED",
        "OVERRUN",
        "OVERRUN_REPEATED",
        "PROVIDER_OLD",
        "RECORDER_BEHIND",
        "RECORDER_DEAD",
        "DISK_LOW",
        "GATEWAY_LOST",
        "GATEWAY_LATCHED",
        "SECOND_PUBLISHER",
        "OPERATOR_STOP",
        "EMERGENCY_STOP",
        "TERMINAL_LOST",
        "PARENT_LOST",
        "MOTION_FINISHED",
    ]
    assert [int(event) for event in sorted(Event)] == list(range(45))


def test_modes_and_tiers_keep_their_stored_numbers() -> None:
    assert {mode.name: int(mode) for mode in Mode} == {
        "DAMP": 0,
        "RAMP": 1,
        "HOLD": 2,
        "POLICY": 3,
        "LIMP": 4,
    }
    assert [tier.name for tier in sorted(Tier)] == ["NONE", "WARN", "SETTLE", "HOLD", "DAMP", "LIMP"]


def test_masks_and_names_are_inverse() -> None:
    mask = bits(Event.ROLL, Event.EMERGENCY_STOP)
    assert mask == 1 | 1 << 41
    assert names(mask) == ["ROLL", "EMERGENCY_STOP"]
    assert names(0) == []
    assert bits() == 0


def test_bits_of_a_later_version_are_still_shown() -> None:
    assert names(1 << 60 | 1) == ["ROLL", "BIT_60"]

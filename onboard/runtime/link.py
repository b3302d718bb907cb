"""The boundary to a robot: one state in, one command out, four methods.

A link is a robot over DDS, the in-process simulator, or a recording. Nothing here knows which.
"""

from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onboard.configs.robot import N_JOINTS

Float32Array = NDArray[np.float32]


class State:
    """The newest good sample of the robot's state. One object per link, overwritten in place.

    Joint arrays are in SDK motor order, shape (29,), float32 as on the wire. Copy what must outlive
    the next `latest()`.

    Attributes:
        received: at least one good sample has arrived; before that every array is zero.
        new: this sample is newer than the one of the previous `latest()`.
        crc_ok: the newest sample's checksum held; a sample that failed is dropped, not shown.
        crc_errors: samples dropped so far for a bad checksum or a wrong length, seen by this link.
        robot_tick: LowState's counter, uint32, milliseconds in every simulator known.
        source_time_ns: the sender's DDS time stamp (its CLOCK_REALTIME), 0 where there is none.
        recv_ns: CLOCK_MONOTONIC of this machine when the sample was taken.
        age_s: how old the sample is, see design: source stamp against our clock less the smallest
            difference seen, cross-checked with the tick. Grows while nothing new arrives.
        mode_pr, mode_machine: as the robot reports them.
        q, dq, tau_est: rad, rad/s, N·m.
        temperature: (29, 2) int16, casing and winding, °C.
        motor_fault: (29,) uint32, the motorstate bits.
        quat_wxyz, gyro_body, accel_body: pelvis IMU; orientation world from pelvis, rad/s, m/s².
        remote: (40,) uint8, the wireless remote's bytes.
        torso_quat_wxyz, torso_gyro: secondary IMU, NaN until it has been heard.
    """

    __slots__ = (
        "accel_body",
        "age_s",
        "crc_errors",
        "crc_ok",
        "dq",
        "gyro_body",
        "mode_machine",
        "mode_pr",
        "motor_fault",
        "new",
        "q",
        "quat_wxyz",
        "received",
        "recv_ns",
        "remote",
        "robot_tick",
        "source_time_ns",
        "tau_est",
        "temperature",
        "torso_gyro",
        "torso_quat_wxyz",
    )

    def __init__(self) -> None:
        self.received = False
        self.new = False
        self.crc_ok = True
        self.crc_errors = 0
        self.robot_tick = 0
        self.source_time_ns = 0
        self.recv_ns = 0
        self.age_s = 0.0
        self.mode_pr = 0
        self.mode_machine = 0
        self.q: Float32Array = np.zeros(N_JOINTS, np.float32)
        self.dq: Float32Array = np.zeros(N_JOINTS, np.float32)
        self.tau_est: Float32Array = np.zeros(N_JOINTS, np.float32)
        self.temperature: NDArray[np.int16] = np.zeros((N_JOINTS, 2), np.int16)
        self.motor_fault: NDArray[np.uint32] = np.zeros(N_JOINTS, np.uint32)
        self.quat_wxyz: Float32Array = np.array([1, 0, 0, 0], np.float32)
        self.gyro_body: Float32Array = np.zeros(3, np.float32)
        self.accel_body: Float32Array = np.zeros(3, np.float32)
        self.remote: NDArray[np.uint8] = np.zeros(40, np.uint8)
        self.torso_quat_wxyz: Float32Array = np.full(4, np.nan, np.float32)
        self.torso_gyro: Float32Array = np.full(3, np.nan, np.float32)

    def assign(self, other: "State") -> None:
        """Become a copy of another state; the arrays stay this one's own."""
        for name in _SCALARS:
            setattr(self, name, getattr(other, name))
        for name in _ARRAYS:
            getattr(self, name)[:] = getattr(other, name)


_ARRAYS = tuple(name for name in State.__slots__ if isinstance(getattr(State(), name), np.ndarray))
_SCALARS = tuple(name for name in State.__slots__ if name not in _ARRAYS)


class Kind(IntEnum):
    """What control asks of the gateway."""

    PASS = 1
    """Track this target."""
    DAMP = 2
    """Control decided to damp: latches in the gateway."""
    STOP = 3
    """Clean end: damp for the rest of the handshake, then publish nothing more."""


COMMAND = np.dtype(
    [
        ("number", "<u8"),  # rises by one with every command of a run
        ("made_ns", "<i8"),  # CLOCK_MONOTONIC when control handed it over
        ("session", "<u4"),  # rises with every re-arming
        ("state_tick", "<u4"),  # robot_tick of the state it was computed from
        ("kind", "u1"),
        ("mode_machine", "u1"),  # echoed from the state
        ("pad", "V6"),
        ("q", "<f4", N_JOINTS),  # rad
        ("kp", "<f4", N_JOINTS),  # N·m/rad
        ("kd", "<f4", N_JOINTS),  # N·m·s/rad
    ]
)
"""One command from control to whoever publishes it; a 0-d structured array of this type."""


class Link(Protocol):
    """Reads state from and sends commands to one robot."""

    def open(self) -> None:
        """Connect, and wait for the first state.

        Raises:
            LinkError: nothing was heard in time, or the interface is unknown.
        """

    def latest(self) -> State:
        """Newest good sample, taken on demand; always the same object, never blocks."""

    def send(self, command: np.ndarray) -> None:
        """Hand one `COMMAND` over; returns at once."""

    def close(self) -> None:
        """Release everything; safe to call twice."""

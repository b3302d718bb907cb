"""The robot's message types for DDS: names, hashes and topics.

Every 8-bit field is declared as `byte`. The robot runs Cyclone DDS 0.10.2, which knows an octet as
TK_BYTE; since version 11 Python's `uint8` announces itself as TK_UINT8, which 0.10.2 can't read: the
types then do not match, and the robot's process can crash on them. A test pins the type hashes.

The classes exist for their type descriptions and for slow paths (RPC, tests). State and commands go
as bytes, see `wire`.
"""
# The base class takes the type's name as a keyword, and `U8` is chosen at import: both are beyond mypy.
# mypy: disable-error-code="call-arg, valid-type"

import hashlib
from dataclasses import dataclass, field
from typing import Any

import cyclonedds.idl.types as types
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import autoid, final

from onboard.runtime.wire import N_MOTORS

U8 = getattr(types, "byte", types.uint8)  # 0.10.x has no `byte`, and there `uint8` already means it

LOW_STATE_TOPIC = "rt/lowstate"
LOW_CMD_TOPIC = "rt/lowcmd"
TORSO_IMU_TOPIC = "rt/secondary_imu"
BATTERY_TOPIC = "rt/lf/bmsstate"
GROUND_TRUTH_TOPIC = "rt/sim/ground_truth"
EXTERNAL_POSE_TOPIC = "rt/external_pose"


PINNED_TYPE_MAPS = {
    "LowState": "f02e596f4b722f64bc5797b6e51a592b",
    "LowCmd": "8cc5c5b69bc998e85203003c8f45ae1c",
    "ImuState": "a3d62349725c01f252aa2f264fc62331",
    "Request": "0bc23fa01c14160c3835ab3c46eeda27",
    "Response": "2622be598ba169d05b22b076c87a5df0",
}
"""MD5 of each type's map as the robot's Cyclone 0.10.2 makes it; with another one its process may crash."""


def type_map_md5(name: str) -> str:
    """MD5 of a message type's map as the installed Cyclone makes it; `name` is a class of this module."""
    description: Any = globals()[name].__idl__
    description.populate()
    description.fill_type_data()
    return hashlib.md5(description._xt_bytedata[1], usedforsecurity=False).hexdigest()


def _zeros(number: type, count: int) -> list[object]:
    return [number(0)] * count


def _motors(motor: type) -> list[object]:
    return [motor() for _ in range(N_MOTORS)]


@dataclass
@final
@autoid("sequential")
class ImuState(IdlStruct, typename="unitree_hg.msg.dds_.IMUState_"):
    """Orientation w, x, y, z; rad/s; m/s²; rad; °C."""

    quaternion: types.array[types.float32, 4] = field(default_factory=lambda: _zeros(float, 4))
    gyroscope: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))
    accelerometer: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))
    rpy: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))
    temperature: types.int16 = 0


@dataclass
@final
@autoid("sequential")
class MotorState(IdlStruct, typename="unitree_hg.msg.dds_.MotorState_"):
    """One motor's state; temperatures of casing and winding."""

    mode: U8 = 0
    q: types.float32 = 0.0
    dq: types.float32 = 0.0
    ddq: types.float32 = 0.0
    tau_est: types.float32 = 0.0
    temperature: types.array[types.int16, 2] = field(default_factory=lambda: _zeros(int, 2))
    vol: types.float32 = 0.0
    sensor: types.array[types.uint32, 2] = field(default_factory=lambda: _zeros(int, 2))
    motorstate: types.uint32 = 0
    reserve: types.array[types.uint32, 4] = field(default_factory=lambda: _zeros(int, 4))


@dataclass
@final
@autoid("sequential")
class MotorCmd(IdlStruct, typename="unitree_hg.msg.dds_.MotorCmd_"):
    """One motor's command."""

    mode: U8 = 0
    q: types.float32 = 0.0
    dq: types.float32 = 0.0
    tau: types.float32 = 0.0
    kp: types.float32 = 0.0
    kd: types.float32 = 0.0
    reserve: types.uint32 = 0


@dataclass
@final
@autoid("sequential")
class LowState(IdlStruct, typename="unitree_hg.msg.dds_.LowState_"):
    """Everything that the robot reports, 500 times a second."""

    version: types.array[types.uint32, 2] = field(default_factory=lambda: _zeros(int, 2))
    mode_pr: U8 = 0
    mode_machine: U8 = 0
    tick: types.uint32 = 0
    imu_state: ImuState = field(default_factory=ImuState)
    motor_state: types.array[MotorState, 35] = field(
        default_factory=lambda: [MotorState() for _ in range(35)]
    )
    wireless_remote: types.array[U8, 40] = field(default_factory=lambda: _zeros(int, 40))
    reserve: types.array[types.uint32, 4] = field(default_factory=lambda: _zeros(int, 4))
    crc: types.uint32 = 0


@dataclass
@final
@autoid("sequential")
class LowCmd(IdlStruct, typename="unitree_hg.msg.dds_.LowCmd_"):
    """Everything that the robot is told."""

    mode_pr: U8 = 0
    mode_machine: U8 = 0
    motor_cmd: types.array[MotorCmd, N_MOTORS] = field(default_factory=lambda: _motors(MotorCmd))
    reserve: types.array[types.uint32, 4] = field(default_factory=lambda: _zeros(int, 4))
    crc: types.uint32 = 0


@dataclass
@final
@autoid("sequential")
class BmsState(IdlStruct, typename="unitree_hg.msg.dds_.BmsState_"):
    """The battery: mV, mA, per cent of charge and of health, °C."""

    version_high: U8 = 0
    version_low: U8 = 0
    fn: U8 = 0
    cell_vol: types.array[types.uint16, 40] = field(default_factory=lambda: _zeros(int, 40))
    bmsvoltage: types.array[types.uint32, 3] = field(default_factory=lambda: _zeros(int, 3))
    current: types.int32 = 0
    soc: U8 = 0
    soh: U8 = 0
    temperature: types.array[types.int16, 12] = field(default_factory=lambda: _zeros(int, 12))
    cycle: types.uint16 = 0
    manufacturer_date: types.uint16 = 0
    bmsstate: types.array[types.uint32, 5] = field(default_factory=lambda: _zeros(int, 5))
    reserve: types.array[types.uint32, 3] = field(default_factory=lambda: _zeros(int, 3))


BATTERY_BYTES, CHARGE_AT = 168, 104
"""Length of a serialised `BmsState` with its header, and where `soc` is in it."""


def state_of_charge(raw: bytes) -> int | None:
    """Per cent, from the bytes of a `BmsState`; None where they are none."""
    return raw[CHARGE_AT] if len(raw) == BATTERY_BYTES else None


@dataclass
@final
@autoid("sequential")
class GroundTruth(IdlStruct, typename="onboard.msg.dds_.GroundTruth_"):
    """What only a simulator knows; layout and frames at `wire.GROUND_TRUTH`."""

    tick: types.uint32 = 0
    position: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))
    quaternion: types.array[types.float32, 4] = field(default_factory=lambda: _zeros(float, 4))
    linear_velocity: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))
    angular_velocity: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))
    contact_force: types.array[types.float32, 6] = field(default_factory=lambda: _zeros(float, 6))


@dataclass
@final
@autoid("sequential")
class ExternalPose(IdlStruct, typename="onboard.msg.dds_.ExternalPose_"):
    """The pelvis as motion capture sees it; units and frames at `wire_layout.EXTERNAL_POSE`."""

    stamp_ns: types.int64 = 0
    position: types.array[types.float64, 3] = field(default_factory=lambda: _zeros(float, 3))
    quaternion: types.array[types.float64, 4] = field(default_factory=lambda: _zeros(float, 4))
    linear_velocity: types.array[types.float32, 3] = field(default_factory=lambda: _zeros(float, 3))


@dataclass
@final
@autoid("sequential")
class RequestIdentity(IdlStruct, typename="unitree_api.msg.dds_.RequestIdentity_"):
    """Which call this is."""

    id: types.int64 = 0
    api_id: types.int64 = 0


@dataclass
@final
@autoid("sequential")
class RequestLease(IdlStruct, typename="unitree_api.msg.dds_.RequestLease_"):
    """Lease of the caller; unused by the services called here."""

    id: types.int64 = 0


@dataclass
@final
@autoid("sequential")
class RequestPolicy(IdlStruct, typename="unitree_api.msg.dds_.RequestPolicy_"):
    """Priority, and whether an answer is wanted."""

    priority: types.int32 = 0
    noreply: bool = False


@dataclass
@final
@autoid("sequential")
class RequestHeader(IdlStruct, typename="unitree_api.msg.dds_.RequestHeader_"):
    """Head of a call."""

    identity: RequestIdentity = field(default_factory=RequestIdentity)
    lease: RequestLease = field(default_factory=RequestLease)
    policy: RequestPolicy = field(default_factory=RequestPolicy)


@dataclass
@final
@autoid("sequential")
class Request(IdlStruct, typename="unitree_api.msg.dds_.Request_"):
    """A call; the parameter is JSON."""

    header: RequestHeader = field(default_factory=RequestHeader)
    parameter: str = ""
    binary: types.sequence[U8] = field(default_factory=list)


@dataclass
@final
@autoid("sequential")
class ResponseStatus(IdlStruct, typename="unitree_api.msg.dds_.ResponseStatus_"):
    """0, or an error number."""

    code: types.int32 = 0


@dataclass
@final
@autoid("sequential")
class ResponseHeader(IdlStruct, typename="unitree_api.msg.dds_.ResponseHeader_"):
    """Head of an answer."""

    identity: RequestIdentity = field(default_factory=RequestIdentity)
    status: ResponseStatus = field(default_factory=ResponseStatus)


@dataclass
@final
@autoid("sequential")
class Response(IdlStruct, typename="unitree_api.msg.dds_.Response_"):
    """An answer; the data is JSON."""

    header: ResponseHeader = field(default_factory=ResponseHeader)
    data: str = ""
    binary: types.sequence[U8] = field(default_factory=list)

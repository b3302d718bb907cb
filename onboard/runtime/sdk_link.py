"""The link through the vendor's Python objects (extra `sdk`), for those who must use them.

It does what `DdsLink` and the gateway do with bytes, with unitree_sdk2py's messages, channels and
checksum library instead, and is the baseline of the benchmarks. It publishes by itself: no gateway
stands behind it, so nothing expires when the program hangs. Use it on a gantry.

With cyclonedds 11 and later the vendor's message types can crash the robot's processes (see `idl`),
so then it works on a loopback domain of its own only.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onboard.configs.errors import LinkError
from onboard.configs.robot import N_JOINTS
from onboard.runtime import idl
from onboard.runtime.age import SampleAge
from onboard.runtime.dds import configuration, cyclonedds_version
from onboard.runtime.interfaces import find_interface, interfaces, listed
from onboard.runtime.link import Float32Array, Kind, State

FIRST_STATE_TIMEOUT_S = 3.0
LISTEN_S = 0.2
DAMPING_S = 1.0
_DAMPING_PERIOD_S = 0.005


def refuse_dangerous(version: str, domain_id: int, interface: str) -> None:
    """Let the vendor's types onto a network only where they can't crash the robot's processes.

    Raises:
        LinkError: cyclonedds 11 or later, and not a loopback domain other than 0.
    """
    harmless = version.startswith("0.10.") or (interface == "lo" and domain_id != 0)
    if not harmless:
        raise LinkError(
            f"the vendor's types with cyclonedds {version} can crash the robot's processes, so SdkLink "
            f"refuses domain {domain_id} on '{interface}'; use DdsLink, or cyclonedds 0.10.2 on Python 3.10, "
            "or a loopback domain other than 0"
        )


class SdkLink:
    """State and commands through unitree_sdk2py.

    Args:
        domain_id: 0 on the robot.
        interface: network interface by name.
        valid: (29,) bool, motors that this robot has.
        damping_kd: (29,) N·m·s/rad, sent with kp 0 where control asks to damp or stop.
    """

    def __init__(
        self, domain_id: int, interface: str, valid: NDArray[np.bool_], damping_kd: Float32Array
    ) -> None:
        self._domain_id = domain_id
        self._interface = interface
        self._motors = np.flatnonzero(valid).tolist()
        self._damping_kd = damping_kd.tolist()
        self._state = State()
        self._age = SampleAge()
        self._age_at_reception_ns = 0
        self._newest: Any = None
        self._seen: Any = None
        self._sent = False
        self._channels: list[Any] = []
        self._publisher: Any = None
        self._command: Any = None
        self._crc: Any = None

    def open(self) -> None:
        """Connect, make sure that nobody else commands, and wait up to 3 s for the first state.

        Raises:
            LinkError: a dangerous combination of versions, no SDK, an unknown interface, another
                publisher of commands, or silence.
        """
        refuse_dangerous(cyclonedds_version(), self._domain_id, self._interface)
        sdk = _Sdk(self._domain_id, self._interface)
        try:
            self._connect(sdk)
        except LinkError:
            self.close()
            raise

    def latest(self) -> State:
        """Newest good sample; always the same object, never blocks."""
        state, message, now = self._state, self._newest, time.monotonic_ns()
        state.new = False
        if message is not None and message is not self._seen:
            self._seen = message
            state.new = state.crc_ok = self._crc.Crc(message) == message.crc
            if state.new:
                self._read(message, now)
            else:
                state.crc_errors += 1
        state.age_s = (now - state.recv_ns + self._age_at_reception_ns) * 1e-9 if state.received else np.inf
        return state

    def send(self, command: np.ndarray) -> None:
        """Publish one `COMMAND` at once; with kp 0 and the damping gains when control damps or stops."""
        damp = command["kind"] != Kind.PASS
        q = command["q"].tolist()
        kp = [0.0] * N_JOINTS if damp else command["kp"].tolist()
        kd = self._damping_kd if damp else command["kd"].tolist()
        self._publish(q, kp, kd, int(command["mode_machine"]))

    def close(self) -> None:
        """A second of damping if anything was ever sent, then disconnect; safe to call twice."""
        zeros = [0.0] * N_JOINTS
        until = time.monotonic() + DAMPING_S
        while self._sent and time.monotonic() < until:
            self._publish(zeros, zeros, self._damping_kd, self._state.mode_machine)
            time.sleep(_DAMPING_PERIOD_S)
        self._sent = False
        for channel in self._channels:
            channel.Close()
        self._channels.clear()

    def _connect(self, sdk: "_Sdk") -> None:
        self._crc, self._command = sdk.crc, sdk.command()
        self._channels.append(sdk.subscribe(idl.LOW_STATE_TOPIC, sdk.state_type, self._keep))
        others: list[Any] = []
        ear = sdk.subscribe(idl.LOW_CMD_TOPIC, sdk.command_type, others.append)
        until = time.monotonic() + FIRST_STATE_TIMEOUT_S
        time.sleep(LISTEN_S)
        ear.Close()
        if others:
            raise LinkError(f"somebody else commands the robot: {len(others)} messages in {LISTEN_S:g} s")
        while not self.latest().received:
            if time.monotonic() > until:
                raise LinkError(
                    f"no state on {idl.LOW_STATE_TOPIC} within {FIRST_STATE_TIMEOUT_S:g} s on domain "
                    f"{self._domain_id}, {self._interface}; interfaces here: {listed(interfaces())}"
                )
            time.sleep(0.002)
        self._publisher = sdk.publish(idl.LOW_CMD_TOPIC, sdk.command_type)
        self._channels.append(self._publisher)

    def _keep(self, message: object) -> None:
        self._newest = message

    def _publish(self, q: list[float], kp: list[float], kd: list[float], mode_machine: int) -> None:
        """The one place where the vendor's command object is written; the rest of it stays zero."""
        message = self._command
        message.mode_machine = mode_machine
        for i in self._motors:
            motor = message.motor_cmd[i]
            motor.mode, motor.q, motor.kp, motor.kd = 1, q[i], kp[i], kd[i]
        message.crc = self._crc.Crc(message)
        self._publisher.Write(message)
        self._sent = True

    def _read(self, message: Any, now: int) -> None:  # noqa: ANN401 - the vendor's untyped message
        state, imu = self._state, message.imu_state
        stamp = getattr(message, "sample_info", None)
        state.source_time_ns = stamp.source_timestamp if stamp else 0
        state.received, state.recv_ns, state.robot_tick = True, now, message.tick
        state.mode_pr, state.mode_machine = message.mode_pr, message.mode_machine
        self._age_at_reception_ns = self._age.at_reception_ns(state.source_time_ns, message.tick, now)
        for i, motor in enumerate(message.motor_state[:N_JOINTS]):
            state.q[i], state.dq[i], state.tau_est[i] = motor.q, motor.dq, motor.tau_est
            state.temperature[i] = motor.temperature
            state.motor_fault[i] = motor.motorstate
        state.quat_wxyz[:] = imu.quaternion
        state.gyro_body[:] = imu.gyroscope
        state.accel_body[:] = imu.accelerometer
        state.remote[:] = bytearray(message.wireless_remote)  # bytes or a list, by version


class _Sdk:
    """The vendor's package, imported and connected."""

    def __init__(self, domain_id: int, interface: str) -> None:
        found = find_interface(interface)
        try:
            from unitree_sdk2py.core import channel
            from unitree_sdk2py.idl.default import unitree_hg_msg_dds__LowCmd_
            from unitree_sdk2py.idl.unitree_hg.msg.dds_ import LowCmd_, LowState_
            from unitree_sdk2py.utils.crc import CRC
        except ImportError as error:
            raise LinkError(f"SdkLink needs the vendor's package ({error}); install onboard[sdk]") from error
        # Theirs traces into one fixed file for all users, and finds nobody on loopback.
        channel.ChannelConfigHasInterface = configuration(found)
        try:
            channel.ChannelFactoryInitialize(domain_id, interface)
        except Exception as error:  # all that the package raises
            raise LinkError(f"unitree_sdk2py can't open domain {domain_id} on {found}") from error
        self._channel = channel
        self.state_type, self.command_type = LowState_, LowCmd_
        self.command = unitree_hg_msg_dds__LowCmd_
        self.crc = CRC()

    def subscribe(self, topic: str, kind: type, handler: Any) -> Any:  # noqa: ANN401 - untyped package
        """A subscriber that hands every message to `handler`, in the middleware's thread."""
        subscriber = self._channel.ChannelSubscriber(topic, kind)
        subscriber.Init(handler, 0)
        return subscriber

    def publish(self, topic: str, kind: type) -> Any:  # noqa: ANN401 - untyped package
        """A publisher."""
        publisher = self._channel.ChannelPublisher(topic, kind)
        publisher.Init()
        return publisher

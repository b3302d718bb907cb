"""The link to a robot over DDS: newest state on demand, commands through whatever sink it is given."""

import time
from collections.abc import Callable

import numpy as np

from onboard.configs.errors import LinkError
from onboard.runtime import idl
from onboard.runtime.age import SampleAge
from onboard.runtime.dds import DdsDomain, RawReader
from onboard.runtime.interfaces import interfaces, listed
from onboard.runtime.link import State
from onboard.runtime.wire import LowStateDecoder, decode_torso_imu

FIRST_STATE_TIMEOUT_S = 3.0
_TORSO_LOST_NS = 100_000_000


class DdsLink:
    """State from `rt/lowstate` and `rt/secondary_imu`; commands go to `sink`, never to DDS.

    Only the gateway publishes commands. `sink` is how they get there (its slot); without one nothing
    that this link does can reach the robot's motors.

    Args:
        domain: where the robot is; closed by its owner.
        sink: takes one `COMMAND`; None for a dry run.
    """

    def __init__(self, domain: DdsDomain, sink: Callable[[np.ndarray], None] | None = None) -> None:
        self._domain = domain
        self._sink = sink
        self._states: RawReader | None = None
        self._torso: RawReader | None = None
        self._decoder = LowStateDecoder()
        self._age = SampleAge()
        self._age_at_reception_ns = 0
        self._torso_ns = 0
        self._state = State()
        self._newest = b""
        self._scratch = State()

    def open(self) -> None:
        """Start to listen, and wait up to 3 s for the first good state.

        Raises:
            LinkError: nothing usable was heard; the message lists what was, and the interfaces.
        """
        self._states = self._domain.reader(idl.LOW_STATE_TOPIC, idl.LowState)
        self._torso = self._domain.reader(idl.TORSO_IMU_TOPIC, idl.ImuState)
        until = time.monotonic() + FIRST_STATE_TIMEOUT_S
        while not self.latest().received:
            left_s = until - time.monotonic()
            if left_s <= 0:
                message = self._silence()
                self.close()
                raise LinkError(message)
            time.sleep(min(0.002, left_s))

    def latest(self) -> State:
        """Newest good sample; always the same object, never blocks."""
        state = self._state
        sample = self._states.take() if self._states else None
        now = time.monotonic_ns()
        state.new = False
        if sample is not None:
            state.new = state.crc_ok = self._decoder.decode(sample.raw, state)
            if state.new:
                self._newest = sample.raw
                state.received = True
                state.source_time_ns, state.recv_ns = sample.source_time_ns, now
                self._age_at_reception_ns = self._age.at_reception_ns(
                    sample.source_time_ns, state.robot_tick, now
                )
            else:
                state.crc_errors += 1
        state.age_s = (now - state.recv_ns + self._age_at_reception_ns) * 1e-9 if state.received else np.inf
        self._look_at_torso(now)
        return state

    def send(self, command: np.ndarray) -> None:
        """Hand one `COMMAND` to the sink; nothing at all in a dry run."""
        if self._sink is not None:
            self._sink(command)

    def close(self) -> None:
        """Stop listening; safe to call twice."""
        for reader in (self._states, self._torso):
            if reader is not None:
                reader.close()
        self._states = self._torso = None

    def warm(self) -> None:
        """Decode the newest good sample once more, for the caches' sake; what it says goes nowhere."""
        self._decoder.decode(self._newest, self._scratch)

    def _look_at_torso(self, now: int) -> None:
        """The torso's IMU has neither counter nor checksum; silence for 100 ms makes it NaN again."""
        sample = self._torso.take() if self._torso else None
        if sample is not None and decode_torso_imu(sample.raw, self._state):
            self._torso_ns = now
        elif self._torso_ns and now - self._torso_ns > _TORSO_LOST_NS:
            self._torso_ns = 0
            self._state.torso_quat_wxyz.fill(np.nan)
            self._state.torso_gyro.fill(np.nan)

    def _silence(self) -> str:
        """Why there is no state, as far as can be told, in one line."""
        domain, topic = self._domain, idl.LOW_STATE_TOPIC
        heard = domain.publications()
        kinds = sorted({found.type_name for found in heard if found.topic == topic})
        others = ", ".join(sorted({found.topic for found in heard if found.topic != topic})) or "none"
        if self._state.crc_errors:
            fault = f"{self._state.crc_errors} samples came, each with a wrong checksum or length"
        elif kinds:
            expected = idl.LowState.__idl_typename__.replace(".", "::")
            fault = f"it has a publisher of {', '.join(kinds)} that does not match; expected {expected}"
        else:
            fault = "it has no publisher"
        return (
            f"no state on {topic} within {FIRST_STATE_TIMEOUT_S:g} s (domain {domain.id}, "
            f"{domain.interface}): {fault}; other topics heard: {others}; "
            f"interfaces here: {listed(interfaces())}; "
            "check that the robot is on and give its network interface and domain id"
        )


class CommandWatch:
    """Listens on `rt/lowcmd` for publishers outside this process."""

    def __init__(self, domain: DdsDomain) -> None:
        self._domain = domain
        self._reader = domain.reader(idl.LOW_CMD_TOPIC, idl.LowCmd, depth=16, ignore_own=True)

    def poll(self) -> list[int]:
        """Writer handle of every sample that came since the last call."""
        return [sample.writer for sample in self._reader.take_all()]

    def close(self) -> None:
        """Stop listening; safe to call twice."""
        self._reader.close()


def listen_for_commander(domain: DdsDomain, seconds: float = 0.2) -> str:
    """Whether somebody else commands the robot: "" when nobody does, else who, for a message.

    Merely having a publisher is harmless (a standby writer is silent until it is needed); sending is not.
    """
    watch = CommandWatch(domain)
    heard: list[int] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.005)
        heard += watch.poll()
    watch.close()
    if not heard:
        return ""
    who = {found.writer: found.participant for found in domain.publications()}
    names = sorted({who.get(writer, "not announced") for writer in heard})
    return (
        f"{len(heard)} commands in {seconds:g} s on {idl.LOW_CMD_TOPIC} from participant {', '.join(names)}"
    )

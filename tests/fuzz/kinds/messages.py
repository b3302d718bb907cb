"""What comes over the network or out of shared memory: frames, calls, datagrams, slots."""

import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from onboard.configs.errors import LinkError, OnboardError
from onboard.configs.events import Mode, Tier
from onboard.configs.safety import damping_kd, load_safety
from onboard.configs.sim import load_sim
from onboard.logging.estimation import EstimatorFeed
from onboard.logging.layout import PolicyShape, record_dtype
from onboard.logging.lowstate import LowStateListener
from onboard.logging.pose_feed import PoseFeed
from onboard.policies.estimators.estimator import make_odometry
from onboard.policies.policy import Policy
from onboard.runtime.dds import Sample
from onboard.runtime.external_pose import Pose, decode_datagram, decode_sample, encode_datagram
from onboard.runtime.gateway_core import Core, GatewayState, Inputs, make_config, step, within_limits
from onboard.runtime.idl import (
    Request,
    RequestHeader,
    RequestIdentity,
    Response,
    ResponseHeader,
    ResponseStatus,
)
from onboard.runtime.link import COMMAND, State
from onboard.runtime.motion_switcher import Api, Code, MotionSwitcher, MotionSwitcherResponder, padded
from onboard.runtime.ports import CONTROL, GATEWAY, RECORDER, RUN, run_layout
from onboard.runtime.remote import encode_remote
from onboard.runtime.shm import Ring, Shared
from onboard.runtime.snapshot import RunView
from onboard.runtime.wire import (
    LOW_CMD,
    Frame,
    ImuEncoder,
    LowCmdWriter,
    LowStateDecoder,
    LowStateEncoder,
    decode_torso_imu,
)
from onboard.safety.gate import Gate
from onboard.sim.robot import ACCEPTED, SimRobot
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.kinds.policies import _small
from tests.fuzz.mutate import Strategy, blobs
from tests.policies.models import ROBOT

PERIOD_NS = 20_000_000
SEPARATOR = b"<next message>"
"""Between the messages of a case, which lie in one file."""

ODD_FLOATS = [np.float32(x).tobytes() for x in (np.nan, np.inf, -np.inf, 1e38, 1e-45, 0.0, -7.0, 1e6)]


def _messages(*examples: bytes, count: int = 8) -> Strategy:
    """Some messages, most of them spoiled."""
    one = st.one_of(st.sampled_from(examples), blobs(*examples, pieces=ODD_FLOATS), blobs(*examples))
    return st.lists(one, min_size=1, max_size=count).map(lambda found: {"messages": SEPARATOR.join(found)})


def _read(place: Path) -> list[bytes]:
    return (place / "messages").read_bytes().split(SEPARATOR)


class _Messages:
    """A reader that hands out given bytes."""

    def __init__(self, raws: Sequence[bytes]) -> None:
        self.raws = list(raws)

    def take_all(self) -> list[Sample]:
        taken, self.raws = self.raws, []
        return [Sample(raw, 1_700_000_000_000_000_000 + i * 2_000_000, 1) for i, raw in enumerate(taken)]


def _sealed(frame: Frame, raw: bytes) -> bytes:
    """The message with a checksum that holds, where its length allows one."""
    return bytes(frame.seal()) if frame.load(raw) else raw


def _low_state(tick: int = 1000) -> bytes:
    encoder = LowStateEncoder(5)
    encoder.quat_wxyz[0], encoder.accel_body[2] = 1.0, 9.81
    encoder.temperature[:] = 30
    encoder.remote[:] = np.frombuffer(encode_remote(0), np.uint8)
    return bytes(encoder.seal(tick))


@cache
def _state_side() -> tuple[Gate, Policy]:
    policy = Policy(_small(), ROBOT)
    return Gate(load_safety(), ROBOT, 0.02), policy


def _low_states() -> Strategy:
    _state_side()
    return _messages(_low_state(), _low_state(1020), _low_state(2**32 - 1), count=12)


def _read_low_states(place: Path) -> None:
    """Through everything that a state goes through: gate, policy, limits, recorder, odometry."""
    _, policy = _state_side()
    gate = Gate(load_safety(), ROBOT, 0.02)
    decoder, state = LowStateDecoder(), State()
    sealer = Frame(decoder.frame.fields.dtype)
    raws = [_sealed(sealer, raw) for raw in _read(place)]
    policy.reset(state)
    for step_number, raw in enumerate(raws):
        state.new = state.crc_ok = decoder.decode(raw, state)
        state.received = state.received or state.new
        state.recv_ns = step_number * PERIOD_NS
        tier = gate.check_state(state, state.recv_ns, 0, Mode.POLICY)
        policy.observe(state, policy.neutral_command(), step_number)
        raw_action = policy.infer()
        sent = gate.limit(policy.target(raw_action), state, policy.kp, policy.kd, raw_action)
        valid = ROBOT.valid
        if tier < Tier.DAMP:
            assert np.isfinite(sent).all(), "a target that is not finite would be sent"
            assert (sent[valid] >= ROBOT.lower[valid] - 1e-3).all()
            assert (sent[valid] <= ROBOT.upper[valid] + 1e-3).all()
    feed = EstimatorFeed(make_odometry(ROBOT))
    listener = LowStateListener(_Messages(raws * 20), None, feed)
    listener.poll(10**9)
    status = np.zeros((), RECORDER)
    feed.report(status, 10**9)


def _low_cmds() -> Strategy:
    _simulated()
    kd = damping_kd(load_safety(), ROBOT)
    zeros = np.zeros(29, np.float32)
    return _messages(bytes(LowCmdWriter(ROBOT.valid).fill(zeros, zeros + 40, kd, 5)))


@cache
def _simulated() -> SimRobot:
    return SimRobot(load_sim(overrides=["builtin.active=false"]))


def _read_low_cmds(place: Path) -> None:
    robot = _simulated()
    robot.reset()
    sealer = Frame(LOW_CMD)
    for raw in _read(place):
        for message in (raw, _sealed(sealer, raw)):
            verdict = robot.receive(message)
            if verdict == ACCEPTED:
                robot.advance(1)


def _imus() -> Strategy:
    encoder = ImuEncoder()
    encoder.quat_wxyz[0] = 1.0
    return _messages(bytes(encoder.buffer), bytes(encoder.buffer)[:58])


def _read_imus(place: Path) -> None:
    state = State()
    for raw in _read(place):
        decode_torso_imu(raw, state)


def _datagrams() -> Strategy:
    pose = encode_datagram(10**9, (0.0, 0.0, 0.8), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    sample = b"\x00\x01\x00\x00" + pose[8:]
    return _messages(pose, sample, encode_datagram(2**62, (0.0, 0.0, 0.8), (1.0, 0.0, 0.0, 0.0)))


class _Poses:
    def __init__(self, poses: list[Pose | None]) -> None:
        self.poses = poses

    def take_all(self) -> list[Pose | None]:
        return self.poses


def _read_datagrams(place: Path) -> None:
    raws = _read(place)
    raws += [raw[:4] + zlib.crc32(raw[8:]).to_bytes(4, "little") + raw[8:] for raw in raws]
    poses = [decode(raw) for raw in raws for decode in (decode_datagram, decode_sample)]
    feed = PoseFeed(_Poses(poses))
    status = np.zeros((), RECORDER)
    for now in (10**9, 2 * 10**9):
        feed.poll(now)
        feed.report(status)
    if status["external_pose_ns"]:
        assert np.isfinite(status["external_pose"]).all()
        assert abs(np.linalg.norm(status["external_pose"][3:]) - 1) < 1e-6


class _Channel:
    """Stands for a DDS reader or writer of the motion switcher."""

    def __init__(self, raws: Sequence[bytes] = ()) -> None:
        self.messages = _Messages(raws)

    def take_all(self) -> list[Sample]:
        return self.messages.take_all()

    def wait(self, _timeout_s: float) -> bool:
        return True

    def matched(self) -> int:
        return 1

    def write(self, raw: bytes) -> None:
        assert len(raw) % 4 == 0

    def close(self) -> None:
        pass


class _Domain:
    """Stands for a DDS domain: a reader with given messages, a writer that takes everything."""

    id, interface = 1, "lo"

    def __init__(self, raws: Sequence[bytes]) -> None:
        self._raws = raws

    def reader(self, *_topic: Any, **_options: Any) -> _Channel:
        return _Channel(self._raws)

    def writer(self, *_topic: Any, **_options: Any) -> _Channel:
        return _Channel()


ASKED = 77


def _calls() -> Strategy:
    status = ResponseStatus(int(Code.OK))
    header = ResponseHeader(RequestIdentity(ASKED, int(Api.CHECK_MODE)), status)
    texts = ('{"form": "0", "name": "ai"}', '{"name": ' + "[" * 3000, "null", '{"name": 1e999}', '"name"', "")
    answers = [padded(Response(header, text)) for text in texts]
    asked = RequestHeader(RequestIdentity(ASKED, int(Api.SELECT_MODE)))
    return _messages(*answers, padded(Request(asked, '{"name": "ai"}')), count=4)


class _Switcher(MotionSwitcher):
    """A client whose request always has the same number, so that a reply made before fits it."""

    def _ask(self, api: Api, parameter: dict[str, str] | None) -> int:
        return ASKED


def read_calls(place: Path) -> None:
    raws = _read(place)
    responder = MotionSwitcherResponder(_Domain(raws))  # type: ignore[arg-type]
    responder.serve()
    switcher = _Switcher(_Domain(raws), timeout_s=0.002)  # type: ignore[arg-type]
    name = switcher.check()
    if not name.isprintable():
        raise AssertionError(f"a name with control characters would be shown: {name!r}")


SHAPE = record_dtype([PolicyShape("walker", 4, 2)])
LAYOUT = run_layout(SHAPE)
SMALL = {**LAYOUT, "record": (SHAPE, 16)}


@cache
def _mapping() -> bytes:
    shared = Shared.create(SMALL)
    try:
        run = np.zeros((), RUN)
        run["robot"], run["policies"], run["period_ns"] = b"g1_29dof", b"walker,dancer", PERIOD_NS
        for name, dtype in (
            ("control", CONTROL),
            ("gateway", GATEWAY),
            ("recorder", RECORDER),
            ("record", SHAPE),
        ):
            shared[name].push(np.zeros((), dtype))
        shared["run"].push(run)
        return shared.path.read_bytes()
    finally:
        shared.unlink()
        shared.close()


def _mappings() -> Strategy:
    """The mapping with spoiled bytes anywhere, a spoiled head, or whole records of any content."""
    whole = _mapping()
    length = int.from_bytes(whole[8:12], "little")
    head = whole[12 : 12 + length]
    pieces = (b"[" * 5000, b'"f8"', b'"O"', b"-1", b"0", b"9" * 30, b'"|V9999999"', b"{}")

    def with_head(text: bytes) -> bytes:
        return whole[:8] + len(text).to_bytes(4, "little") + text + whole[12 + len(text) :]

    names = st.sampled_from(["control", "gateway", "recorder", "record", "run"])
    records = st.lists(st.tuples(names, st.binary(max_size=64), st.integers(0, 4000)), max_size=4)
    heads = blobs(head, pieces=pieces).map(lambda text: with_head(text[: len(whole) - 12]))
    anywhere = blobs(whole[: 1 << 16], whole).map(lambda found: found if len(found) > 12 else whole)
    return st.one_of(heads, anywhere, records.map(_with_records)).map(
        lambda found: {"onboard-1-x.shm": found}
    )


def _with_records(records: list[tuple[str, bytes, int]]) -> bytes:
    content = bytearray(_mapping())
    view = memoryview(content)
    offset, rings = 1 << 16, {}
    for name, (dtype, slots) in SMALL.items():
        size = Ring.size(dtype, slots)
        rings[name] = Ring(view[offset : offset + size], dtype, slots)
        offset += (size + 63) & ~63
    for name, piece, at in records:
        dtype = SMALL[name][0]
        raw = bytearray(dtype.itemsize)
        if name == "run":
            raw[:8], raw[160:166] = b"g1_29dof", b"walker"
        start = at % len(raw)
        raw[start : start + len(piece)] = piece[: len(raw) - start]
        rings[name].push(np.frombuffer(bytes(raw), dtype).reshape(()))
    return bytes(content)


def _read_mapping(place: Path) -> None:
    view = RunView(place / "onboard-1-x.shm")
    try:
        for _ in range(2):
            view.look()
    finally:
        view.close()


def _commands() -> Strategy:
    command = np.zeros((), COMMAND)
    command["number"], command["made_ns"], command["session"], command["kind"] = 1, 10**9, 1, 1
    command["kp"], command["kd"] = 40.0, 2.0
    again = command.copy()
    again["number"], again["kind"], again["session"] = 2, 3, 2
    return _messages(command.tobytes(), again.tobytes(), count=16)


def _read_commands(place: Path) -> None:
    """The gateway's decisions on slots of any content: what it passes on is inside its limits."""
    limits = make_config(ROBOT, damping_kd(load_safety(), ROBOT), expiry_ms=50.0)
    core, now = Core(), 10**9
    for number, raw in enumerate(_read(place)):
        now += 3_000_000
        content = raw[: COMMAND.itemsize].ljust(COMMAND.itemsize, b"\0")
        command = np.frombuffer(content, COMMAND).reshape(()).copy()
        if number % 2:
            command["made_ns"], command["number"] = now, number
        before = core
        keys = int.from_bytes(raw[:2], "little") if number % 5 == 4 else 0
        core = step(core, Inputs(now, command, number % 7 == 6, keys, 0.0, number // 4, 0, 0, now, 0), limits)
        if core.state is GatewayState.PASSING and core.number != before.number:
            assert within_limits(command, limits)


KINDS = [
    Kind("frame-lowstate", "LowState, through gate, policy, limits, odometry", _low_states, _read_low_states),
    Kind("frame-lowcmd", "LowCmd, by the simulated robot", _low_cmds, _read_low_cmds),
    Kind("frame-imu", "the torso's IMU", _imus, _read_imus),
    Kind("pose", "external poses, datagrams and DDS", _datagrams, _read_datagrams),
    Kind("switcher", "the motion switcher's replies and requests", _calls, read_calls, "motion switcher"),
    Kind("shm", "shared memory, by the status view", _mappings, _read_mapping),
    Kind("command", "the target slot, by the gateway", _commands, _read_commands),
]

__all__ = ["KINDS", "LinkError", "OnboardError"]

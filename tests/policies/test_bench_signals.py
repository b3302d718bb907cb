"""Bench protocols: inside the ranges, swelling and fading, the same every time."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.configs.bench import BenchProtocol, Excite, Segment, load_bench
from onboard.configs.errors import ConfigError
from onboard.configs.loader import CONFIG_ROOT, convert
from onboard.policies.bench_signals import plan_course
from onboard.policies.excitation import Excitation, bench_bundle
from onboard.runtime.link import State
from tests.policies.models import ROBOT

SHIPPED = sorted(path.stem for path in (CONFIG_ROOT / "bench").glob("*.yaml"))
KNEE = "left_knee_joint"
PERIOD_S = 0.02


def protocol(*segments: Segment, **changes: object) -> BenchProtocol:
    data = {"name": "test", "segments": [msgspec.to_builtins(segment) for segment in segments]}
    return convert(data | {"pose": {KNEE: 1.0}} | changes, BenchProtocol, "test")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_protocols_stay_inside_the_ranges_and_end_where_they_began(name: str) -> None:
    shipped = load_bench(name)
    course = plan_course(shipped, ROBOT, PERIOD_S)
    target = course.pose[course.slots] + course.offsets
    margin = shipped.margin_rad - 1e-5
    assert (target > ROBOT.lower[course.slots] + margin).all()
    assert (target < ROBOT.upper[course.slots] - margin).all()
    assert not course.offsets[0].any()
    assert not course.offsets[-1].any()
    assert len(course.offsets) == pytest.approx(shipped.seconds / PERIOD_S, abs=2)


def test_one_leg_is_four_joints_for_four_seconds() -> None:
    left_leg = load_bench("left_leg")
    moved = [ROBOT.joint_names[slot] for slot in plan_course(left_leg, ROBOT, PERIOD_S).slots]
    assert moved == [
        "left_hip_pitch_joint",
        "left_hip_roll_joint",
        "left_knee_joint",
        "left_ankle_pitch_joint",
    ]
    assert [segment.for_s for segment in left_leg.segments] == [4.0]


@settings(max_examples=30, deadline=None)
@given(
    signal=st.sampled_from(["sine", "multisine", "chirp"]),
    amplitude=st.floats(0.05, 0.9),
    hz=st.floats(0.2, 3.0),
    seconds=st.floats(2.0, 8.0),
)
def test_a_signal_swells_fades_and_keeps_its_amplitude(
    signal: str, amplitude: float, hz: float, seconds: float
) -> None:
    segment = Segment(
        signal,  # type: ignore[arg-type]
        seconds,
        {KNEE: Excite(amplitude, hz)},
        hz_list=(hz, 1.7 * hz),
        hz_range=(hz, 2 * hz),
    )
    course = plan_course(protocol(segment, rest_s=0.0), ROBOT, PERIOD_S)
    knee = course.offsets[:, 0]
    assert np.abs(knee).max() <= amplitude + 1e-6
    assert knee[0] == pytest.approx(0.0, abs=1e-6)
    assert knee[-1] == pytest.approx(0.0, abs=1e-6)


def test_a_sine_has_its_frequency() -> None:
    segment = Segment("sine", 10.0, {KNEE: Excite(0.3, 1.5)})
    knee = plan_course(protocol(segment, rest_s=0.0), ROBOT, PERIOD_S).offsets[:, 0]
    spectrum = np.abs(np.fft.rfft(knee))
    assert np.fft.rfftfreq(len(knee), PERIOD_S)[spectrum.argmax()] == pytest.approx(1.5, abs=0.1)
    assert np.abs(knee).max() == pytest.approx(0.3, rel=0.02)


def test_a_chirp_rises_from_its_first_to_its_last_frequency() -> None:
    segment = Segment("chirp", 20.0, {KNEE: Excite(0.3)}, hz_range=(0.5, 4.0))
    knee = plan_course(protocol(segment, rest_s=0.0), ROBOT, PERIOD_S).offsets[:, 0]
    crossings = np.flatnonzero(np.diff(np.signbit(knee))) * PERIOD_S
    assert 0.5 / (crossings[2] - crossings[1]) == pytest.approx(0.6, abs=0.15)
    assert 0.5 / (crossings[-2] - crossings[-3]) == pytest.approx(3.9, abs=0.5)


def test_steps_go_up_back_down_back() -> None:
    segment = Segment("step", 4.0, {KNEE: Excite(0.2)}, step_s=1.0)
    knee = plan_course(protocol(segment, rest_s=0.0), ROBOT, PERIOD_S).offsets[:, 0]
    assert knee[[25, 75, 125, 175]].tolist() == pytest.approx([0.2, 0.0, -0.2, 0.0])


def test_a_sweep_reaches_both_limits_but_for_the_margin() -> None:
    segment = Segment("sweep", 20.0, {KNEE: Excite()}, range_share=1.0)
    knee = 1.0 + plan_course(protocol(segment), ROBOT, PERIOD_S).offsets[:, 0]
    slot = ROBOT.slot(KNEE)
    assert knee.max() == pytest.approx(ROBOT.upper[slot] - 0.05, abs=1e-3)
    assert knee.min() == pytest.approx(ROBOT.lower[slot] + 0.05, abs=1e-3)


def test_a_target_beyond_the_range_is_refused() -> None:
    segment = Segment("sine", 4.0, {KNEE: Excite(1.2, 1.0)})
    with pytest.raises(ConfigError, match=r"left_knee_joint would go from -0\.\d+ to 2\.\d+ rad; its range"):
        plan_course(protocol(segment), ROBOT, PERIOD_S)


@pytest.mark.parametrize(
    ("segment", "said"),
    [
        ({"signal": "sine", "for_s": 1.0, "joints": {KNEE: {"amplitude_rad": 0.1}}}, "needs 'hz'"),
        ({"signal": "sine", "for_s": 1.0, "joints": {KNEE: {"hz": 1.0}}}, "needs 'amplitude_rad'"),
        ({"signal": "chirp", "for_s": 1.0, "joints": {KNEE: {"amplitude_rad": 0.1}}}, "hz_range"),
        ({"signal": "multisine", "for_s": 1.0, "joints": {KNEE: {"amplitude_rad": 0.1}}}, "hz_list"),
        ({"signal": "sine", "for_s": 1.0}, "names 0 joints"),
        ({"signal": "saw", "for_s": 1.0}, "signal"),
    ],
)
def test_an_incomplete_segment_is_refused(segment: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        convert({"name": "test", "segments": [segment]}, BenchProtocol, "test")


def test_an_unknown_joint_is_refused() -> None:
    segment = Segment("sine", 4.0, {"left_tail": Excite(0.1, 1.0)})
    with pytest.raises(ConfigError, match="'left_tail' matches no joint"):
        plan_course(protocol(segment), ROBOT, PERIOD_S)


def test_an_excitation_plays_its_rows_and_comes_to_an_end() -> None:
    left_leg = load_bench("left_leg")
    player = Excitation(bench_bundle(left_leg, ROBOT, 50.0), left_leg, ROBOT)
    course = plan_course(left_leg, ROBOT, PERIOD_S)
    state, command = State(), player.neutral_command()
    player.reset(state)
    for step in (0, 1, 40, 41):
        player.observe(state, command, step)
        target = player.target(player.infer())
        assert np.allclose(
            target[course.slots], (course.pose[course.slots] + course.offsets[step]), atol=1e-6
        )
        assert player.motion_index == step
        assert not player.motion_done
    player.observe(state, command, 100_000)
    assert player.motion_done
    assert np.allclose(player.target(player.infer()), player.start_pose)
    assert player.kp[ROBOT.slot(KNEE)] == 150.0
    assert player.kp[ROBOT.slot("waist_yaw_joint")] == ROBOT.stand_kp[12]


def test_steps_begin_with_the_level_that_their_phase_says() -> None:
    """Two joints that step at once differ in every level: whatever moves can be told apart."""
    joints = {KNEE: Excite(0.1), "left_elbow_joint": Excite(0.1, phase_rad=np.pi / 2)}
    course = plan_course(protocol(Segment("step", 2.0, joints, step_s=0.5)), ROBOT, PERIOD_S)
    levels = course.offsets[course.segment == 0][12::25] / 0.1
    assert np.allclose(levels.T, [[1, 0, -1, 0], [0, -1, 0, 1]])

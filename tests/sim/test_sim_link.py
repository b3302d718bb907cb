from collections.abc import Callable

import numpy as np
import pytest

from onboard.configs.robot import N_JOINTS, load_robot
from onboard.runtime.clock import Clock
from onboard.runtime.gateway_core import GatewayState, Reason, make_config
from onboard.runtime.link import COMMAND, Kind, Link, State
from onboard.runtime.remote import DAMP, LIMP
from onboard.sim.robot import ACCEPTED, SimRobot
from onboard.sim.sim_link import EPOCH_NS, LockStepClock, SimLink

MakeRobot = Callable[..., SimRobot]
DAMPING_KD = np.full(N_JOINTS, 3.0, np.float32)


class Bench:
    """A hanging robot, its link and clock, and a control that sends one target a tick."""

    def __init__(self, robot: SimRobot, tamper: Callable[[State], None] | None = None) -> None:
        config = make_config(load_robot("g1_29dof"), DAMPING_KD, expiry_ms=50)
        self.robot = robot
        self.link = SimLink(robot, config, tamper=tamper)
        self.clock = LockStepClock(self.link)
        self.command = np.zeros((), COMMAND)
        self.command["kp"], self.command["kd"] = 60.0, 2.0
        self.command["kind"], self.command["session"] = Kind.PASS, 1
        self.command["mode_machine"] = 5
        self.link.open()
        self.command["q"] = self.link.latest().q

    def tick(self, ticks: int = 1, silent: bool = False) -> State:
        for _ in range(ticks):
            self.clock.wait()
            state = self.link.latest()
            if not silent:
                self.command["number"] += 1
                self.command["made_ns"] = self.clock.now_ns()
                self.link.send(self.command)
        return state

    @property
    def damped(self) -> bool:
        gains = self.robot.physics.motors.command[3:]
        return not gains[0].any() and bool((gains[1] == DAMPING_KD).all())


@pytest.fixture
def bench(released: MakeRobot) -> Bench:
    return Bench(released("gantry.attached=true"))


def test_is_a_link_and_a_clock(bench: Bench) -> None:
    link: Link = bench.link
    clock: Clock = bench.clock
    clock.start()
    assert link.latest() is link.latest()
    link.close()
    link.close()


def test_a_wait_passes_exactly_one_period(bench: Bench) -> None:
    assert bench.clock.now_ns() == EPOCH_NS
    for number in range(1, 6):
        assert bench.clock.wait() == 0
        assert bench.clock.now_ns() == EPOCH_NS + number * 20_000_000
        state = bench.link.latest()
        assert state.robot_tick == number * 20
        assert state.recv_ns == state.source_time_ns == bench.clock.now_ns()
        assert state.new
        assert state.age_s == 0
        assert not bench.link.latest().new


def test_a_stall_skips_periods_and_time_goes_on(bench: Bench) -> None:
    bench.clock.stall(3)
    assert bench.clock.wait() == 3
    assert bench.clock.now_ns() == EPOCH_NS + 4 * 20_000_000
    assert bench.clock.wait() == 0


def test_targets_reach_the_motors_as_float32(bench: Bench) -> None:
    bench.command["q"][18] += 0.3
    bench.tick(100)
    assert bench.link.core.state is GatewayState.PASSING
    assert bench.link.latest().q[18] == pytest.approx(float(bench.command["q"][18]), abs=0.05)
    np.testing.assert_array_equal(bench.robot.physics.motors.command[0], bench.command["q"])
    # one publication a target and one every 5 ms
    assert bench.robot.verdicts[ACCEPTED] == 100 + 99 * 4


def test_two_runs_are_equal_to_the_last_bit(released: MakeRobot) -> None:
    ends = []
    for _ in range(2):
        bench = Bench(released("gantry.attached=true"))
        bench.command["q"] += 0.1
        ends.append(bench.tick(50).q.copy())
    np.testing.assert_array_equal(ends[0], ends[1])


def test_torso_imu_is_there(bench: Bench) -> None:
    state = bench.tick()
    assert np.linalg.norm(state.torso_quat_wxyz) == pytest.approx(1.0, abs=1e-6)
    assert np.isfinite(state.torso_gyro).all()


def test_expired_target_damps_and_latches(bench: Bench) -> None:
    bench.tick(5)
    bench.tick(2, silent=True)
    assert not bench.damped
    bench.tick(1, silent=True)  # 60 ms after the last target
    assert bench.damped
    assert bench.link.core.reason is Reason.EXPIRED
    bench.tick(5)
    assert bench.damped


def test_target_outside_the_range_damps(bench: Bench) -> None:
    bench.tick(5)
    bench.command["q"][3] = 3.5
    bench.tick()
    assert bench.damped
    assert bench.link.core.reason is Reason.NOT_FINITE_OR_RANGE


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda b: b.robot.remote.press(DAMP, 10.0), Reason.EMERGENCY_STOP),
        (lambda b: setattr(b.link, "parent_alive", False), Reason.PARENT_LOST),
        (lambda b: setattr(b.link, "foreign", 1), Reason.SECOND_PUBLISHER),
        (lambda b: b.command.__setitem__("kind", Kind.DAMP), Reason.CONTROL),
        (lambda b: b.command["q"].__setitem__(0, np.nan), Reason.NOT_FINITE_OR_RANGE),
        (lambda b: b.link.operator.__setitem__("damps", 1), Reason.EMERGENCY_STOP),
    ],
)
def test_the_gateways_other_reasons_damp_too(
    bench: Bench, harm: Callable[[Bench], None], reason: Reason
) -> None:
    bench.tick(5)
    harm(bench)
    bench.tick(12)
    assert bench.damped
    assert bench.link.core.reason is reason


def test_tilt_beyond_the_gateways_limit_damps(released: MakeRobot) -> None:
    bench = Bench(released())
    bench.robot.physics.push((150.0, 0.0, 0.0), 0.5)
    bench.tick(100)
    assert bench.damped
    assert bench.link.core.reason is Reason.TILT


def test_limp_by_the_second_combination(bench: Bench) -> None:
    bench.tick(3)
    bench.robot.remote.press(DAMP, 0.1)
    bench.tick(10)
    bench.robot.remote.press(LIMP, 10.0)
    bench.tick(10)
    assert bench.link.core.state is GatewayState.LIMP
    assert not bench.robot.physics.motors.command[3:].any()


def test_a_corrupt_sample_is_dropped_and_counted(bench: Bench) -> None:
    before = bench.tick().q.copy()
    bench.command["q"][18] += 0.5
    bench.tick()
    bench.robot.faults.corrupt = 1
    state = bench.tick()
    assert not state.new
    assert not state.crc_ok
    assert state.crc_errors == 1
    assert state.age_s == pytest.approx(0.02)
    assert state.robot_tick == 40
    state = bench.tick()
    assert state.new
    assert state.crc_ok
    assert state.age_s == 0
    assert not np.array_equal(before, state.q)


def test_lost_samples_let_the_state_grow_old(bench: Bench) -> None:
    bench.tick(2)
    bench.robot.faults.lost = 3
    ages = [bench.tick().age_s for _ in range(4)]
    assert ages == pytest.approx([0.02, 0.04, 0.06, 0.0])
    assert bench.link.latest().crc_errors == 0


def test_frozen_and_backward_ticks_look_like_new_samples(bench: Bench) -> None:
    bench.tick(5)
    bench.robot.faults.frozen = 2
    frozen = [(state.new, state.robot_tick) for state in (bench.tick(), bench.tick())]
    assert frozen == [(True, 100), (True, 100)]
    assert bench.tick().robot_tick == 160
    bench.robot.faults.backwards = 3
    assert [bench.tick().robot_tick for _ in range(4)] == [158, 156, 154, 240]


def test_another_mode_machine_is_reported_when_asked_for(bench: Bench) -> None:
    bench.robot.faults.mode_machine = 6
    assert bench.tick().mode_machine == 6


def test_tamper_sees_every_state_last(released: MakeRobot) -> None:
    def tamper(state: State) -> None:
        state.q[0] = np.nan

    bench = Bench(released("gantry.attached=true"), tamper)
    assert np.isnan(bench.tick().q[0])


def test_a_late_sample_is_read_behind_its_successor_and_is_as_old_as_it_is(bench: Bench) -> None:
    bench.tick(5)
    bench.robot.faults.reordered = 1
    states = [bench.tick() for _ in range(1)]
    assert not states[0].new
    seen = [(state.new, state.robot_tick, round(state.age_s, 3)) for state in (bench.tick(),)]
    late = bench.tick()
    assert seen == [(True, 140, 0.0)]
    assert (late.new, late.robot_tick, round(late.age_s, 3)) == (True, 120, 0.04)
    assert bench.tick().robot_tick == 180


def test_a_duplicate_is_read_once_more(bench: Bench) -> None:
    bench.tick(5)
    bench.robot.faults.duplicated = 1
    assert [(bench.tick().new, bench.link.latest().robot_tick) for _ in range(3)] == [
        (True, 120),
        (True, 120),
        (True, 160),
    ]


def test_a_counter_that_jumps_goes_on_from_there(bench: Bench) -> None:
    bench.tick(5)
    bench.robot.faults.tick_ms = -1000
    assert bench.tick().robot_tick == (120 - 1000) % 2**32

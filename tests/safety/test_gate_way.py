"""The state's way here, timing and everything that others raise: these count every control tick."""

import pytest

from onboard.configs.events import Event, Mode, Tier
from onboard.configs.safety import load_safety
from onboard.safety.events import DAMPED_IS_NORMAL, FROM_STATE, POLICY
from tests.safety.support import CONFIG, PERIOD_NS, Bench

FOUND_BY_THE_GATE = {
    Event.STATE_OLD,
    Event.STATE_STALE,
    Event.CRC_BAD,
    Event.CRC_RATE,
    Event.TICK_NOT_ADVANCING,
    Event.OVERRUN_REPEATED,
}
RAISED = [
    event for event in Event if event not in FOUND_BY_THE_GATE and not (FROM_STATE | POLICY) >> event & 1
]
MODES = [Mode.DAMP, Mode.RAMP, Mode.HOLD, Mode.POLICY, Mode.LIMP]


def debounce_ticks(event: Event) -> int:
    rule = CONFIG.events[event.name]
    return rule.ticks if rule.ticks is not None else round((rule.seconds or 0) / 0.02)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("event", RAISED)
def test_a_raised_condition_is_debounced_and_tiered_by_the_table(event: Event, mode: Mode) -> None:
    bench = Bench()
    bench.mode = mode
    bench.tick()
    tier = CONFIG.events[event.name].severity
    if mode in (Mode.DAMP, Mode.LIMP) and DAMPED_IS_NORMAL >> event & 1:
        tier = Tier.NONE
    if mode in (Mode.RAMP, Mode.HOLD) and tier is Tier.SETTLE:
        tier = Tier.HOLD
    for _ in range(debounce_ticks(event) - 1):
        assert bench.tick(event) is Tier.NONE
        assert bench.gate.events == 0
    assert bench.tick(event) is tier
    assert bench.fires(event) == (tier > Tier.NONE)


@pytest.mark.parametrize("event", RAISED)
def test_a_raised_condition_counts_without_new_samples_too(event: Event) -> None:
    bench = Bench()
    bench.tick()
    for _ in range(debounce_ticks(event)):
        bench.tick(event, new=False)
    assert bench.fires(event)


@pytest.mark.parametrize("event", RAISED)
def test_what_others_raised_ends_with_them_though_no_sample_comes(event: Event) -> None:
    bench = Bench()
    bench.tick()
    for _ in range(debounce_ticks(event)):
        bench.tick(event)
    bench.tick(new=False)
    assert bench.gate.events == 0
    assert bench.gate.clear


def test_one_lost_sample_stops_nothing() -> None:
    bench = Bench()
    for tick in range(200):
        assert bench.tick(new=tick % 10 != 5) is Tier.NONE
        assert bench.gate.events == 0
        assert bench.gate.clear


@pytest.mark.parametrize("mode", MODES)
def test_old_state_warns_and_stale_state_damps(mode: Mode) -> None:
    bench = Bench()
    bench.mode = mode
    bench.tick()
    tiers = {}
    for age_ms in (39, 40, 41, 99, 100, 101):
        bench.state.age_s = age_ms / 1000 - 0.02
        tiers[age_ms] = bench.tick(new=False)
        if age_ms <= 100:
            bench.gate.rearm()
    assert tiers == {
        39: Tier.NONE,
        40: Tier.NONE,
        41: Tier.WARN,
        99: Tier.WARN,
        100: Tier.WARN,
        101: Tier.DAMP,
    }
    assert bench.fires(Event.STATE_OLD)
    assert bench.fires(Event.STATE_STALE)


def test_old_warns_in_the_second_tick_without_a_sample_and_stale_damps_in_the_fifth() -> None:
    bench = Bench()
    bench.tick()
    tiers = [bench.tick(new=False) for _ in range(5)]
    assert tiers == [Tier.NONE, *[Tier.WARN] * 3, Tier.DAMP]


def test_a_hanging_link_does_not_hide_the_age() -> None:
    bench = Bench()
    bench.tick()
    state = bench.state
    state.new = False  # the link's own age stays at 3 ms
    for late_ms, tier in ((40, Tier.NONE), (41, Tier.WARN), (100, Tier.WARN), (101, Tier.DAMP)):
        assert bench.gate.check_state(state, state.recv_ns + late_ms * 1_000_000, 0, Mode.POLICY) is tier


def test_an_age_that_is_not_a_number_is_stale() -> None:
    bench = Bench()
    bench.tick()
    bench.state.age_s = float("nan")
    assert bench.gate.check_state(bench.state, bench.state.recv_ns, 0, Mode.POLICY) is Tier.DAMP


def test_before_the_first_sample_the_state_is_stale() -> None:
    bench = Bench()
    bench.state.received = False
    bench.state.age_s = 0.0
    assert bench.tick(new=False) is Tier.DAMP
    assert bench.gate.cause == 1 << Event.STATE_STALE
    assert not bench.gate.clear
    assert bench.gate.state is not bench.state


def test_a_condition_seen_here_and_elsewhere_is_one_condition() -> None:
    bench = Bench()
    bench.tick()
    bench.state.age_s = 0.2
    assert bench.tick(Event.STATE_OLD, Event.STATE_STALE, new=False) is Tier.DAMP


@pytest.mark.parametrize("event", sorted(FOUND_BY_THE_GATE))
def test_what_only_somebody_else_has_seen_counts_as_well(event: Event) -> None:
    bench = Bench()
    bench.tick()
    for _ in range(debounce_ticks(event)):
        assert not bench.fires(event)
        bench.tick(event)
    assert bench.fires(event)


def test_a_single_bad_checksum_is_noted_and_stops_nothing() -> None:
    bench = Bench()
    bench.tick()
    bench.state.crc_errors += 1
    assert bench.tick(new=False) is Tier.NONE
    assert bench.fires(Event.CRC_BAD)
    for _ in range(60):
        assert bench.tick() is Tier.NONE
        assert bench.gate.events == 0


def test_a_link_that_counts_anew_has_not_seen_an_error() -> None:
    bench = Bench()
    bench.state.crc_errors = 70
    bench.tick()
    bench.state.crc_errors = 0
    bench.tick()
    assert bench.gate.events == 0
    bench.state.crc_errors = 1
    bench.tick()
    assert bench.fires(Event.CRC_BAD)


def test_errors_counted_before_the_first_tick_are_history() -> None:
    bench = Bench()
    bench.state.crc_errors = 70
    bench.tick()
    assert bench.gate.events == 0


@pytest.mark.parametrize("spacing", [1, 3, 12])
def test_more_than_five_percent_bad_checksums_in_a_second_damp(spacing: int) -> None:
    bench = Bench()
    bench.tick()
    tiers = []
    for tick in range(2 * spacing + 1):
        bad = tick % spacing == 0
        bench.state.crc_errors += bad
        tiers.append(bench.tick(new=not bad))
    assert max(tiers[:-1]) <= Tier.WARN, "2 of 50 are 4 %"
    assert tiers[-1] is Tier.DAMP, "3 are 6 %"


def test_a_rate_at_its_limit_is_not_beyond_it() -> None:
    bench = Bench(load_safety("g1", ["events.CRC_RATE.limit=0.04"]))
    bench.tick()
    for tier in (Tier.NONE, Tier.NONE, Tier.DAMP):  # 2, 4, 6 %
        bench.state.crc_errors += 1
        assert bench.tick() is tier


def test_bad_checksums_that_are_a_second_apart_never_damp() -> None:
    bench = Bench()
    bench.tick()
    for tick in range(300):
        bad = tick % 25 == 0  # 4 %
        bench.state.crc_errors += bad
        assert bench.tick(new=not bad) is Tier.NONE


@pytest.mark.parametrize(("gap", "tier"), [(49, Tier.DAMP), (50, Tier.NONE)])
def test_the_crc_window_is_exactly_a_second(gap: int, tier: Tier) -> None:
    """Two bad checksums in a row, a third `gap` ticks after the first."""
    bench = Bench()
    bench.tick()
    for tick in range(gap + 1):
        bad = tick in (0, 1, gap)
        bench.state.crc_errors += bad
        asked = bench.tick()
    assert asked is tier


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", [0, -20, -100_000, 1 << 31])
def test_a_tick_that_does_not_advance_damps_at_the_third_sample(step: int, mode: Mode) -> None:
    bench = Bench()
    bench.mode = mode
    for _ in range(3):
        bench.tick()
    state = bench.state
    frozen = (state.robot_tick + step) & 0xFFFFFFFF
    for tier in (Tier.NONE, Tier.NONE, Tier.DAMP):
        state.robot_tick = frozen
        state.new = True
        state.recv_ns += PERIOD_NS
        assert bench.gate.check_state(state, state.recv_ns, 0, mode) is tier
    assert bench.gate.cause == 1 << Event.TICK_NOT_ADVANCING


def test_after_a_jump_back_running_on_from_there_does_not_count_as_advancing() -> None:
    bench = Bench()
    bench.state.robot_tick = 1_000_000
    bench.tick()
    bench.state.robot_tick = 5_000
    assert [bench.tick() for _ in range(3)] == [Tier.NONE, Tier.NONE, Tier.DAMP]


@pytest.mark.parametrize("first", [0, 1])
def test_a_counter_that_starts_at_zero_is_a_counter_like_any_other(first: int) -> None:
    bench = Bench()
    state = bench.state
    state.robot_tick = first
    for tier in (Tier.NONE, Tier.NONE, Tier.NONE, Tier.DAMP):  # the first advances, then it is frozen
        assert bench.gate.check_state(state, state.recv_ns, 0, Mode.POLICY) is tier


def test_one_reordered_sample_stops_nothing() -> None:
    bench = Bench()
    for tick in range(60):
        if tick % 6 == 3:
            bench.state.robot_tick -= 40
        assert bench.tick() is Tier.NONE
        if tick % 6 == 3:
            bench.state.robot_tick += 40


def test_the_tick_counter_may_wrap() -> None:
    bench = Bench()
    bench.state.robot_tick = 0xFFFFFFFF - 50
    for _ in range(10):
        assert bench.tick() is Tier.NONE
        assert bench.gate.events == 0
    assert bench.state.robot_tick < 1000


def test_a_large_step_forwards_is_an_advance() -> None:
    bench = Bench()
    bench.tick()
    bench.state.robot_tick += (1 << 31) - 21
    for _ in range(5):
        assert bench.tick() is Tier.NONE
        assert bench.gate.clear


@pytest.mark.parametrize("before", [7, 0xFFFFFFFF, 0x7FFFFFFF])
def test_the_smallest_step_is_an_advance_over_the_wrap_too(before: int) -> None:
    bench = Bench()
    bench.state.robot_tick = (before - 20) & 0xFFFFFFFF
    bench.tick()
    state = bench.state
    for tier in (Tier.NONE, Tier.NONE, Tier.DAMP):  # each of them is a sample that counts
        state.robot_tick = (state.robot_tick + 1) & 0xFFFFFFFF
        state.gyro_body[0] = 7
        assert bench.gate.check_state(state, state.recv_ns, 0, Mode.POLICY) is tier
    assert bench.gate.cause == 1 << Event.ANGULAR_RATE


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spacing", [1, 7, 16])
def test_more_than_three_overruns_in_a_second_settle(spacing: int, mode: Mode) -> None:
    bench = Bench()
    bench.mode = mode
    bench.tick()
    tiers = [bench.tick(*[Event.OVERRUN] * (tick % spacing == 0)) for tick in range(3 * spacing + 1)]
    wanted = Tier.HOLD if mode in (Mode.RAMP, Mode.HOLD) else Tier.SETTLE
    assert tiers[-1] is wanted
    assert set(tiers[:-1]) <= {Tier.NONE, Tier.WARN}
    assert tiers[0] is Tier.WARN


@pytest.mark.parametrize(("gap", "tier"), [(49, Tier.SETTLE), (50, Tier.WARN)])
def test_the_window_of_overruns_is_exactly_a_second(gap: int, tier: Tier) -> None:
    bench = Bench()
    bench.tick()
    for tick in range(gap + 1):
        asked = bench.tick(*[Event.OVERRUN] * (tick in (0, 1, 2, gap)))
    assert asked is tier


def test_overruns_that_spread_over_more_than_a_second_only_warn() -> None:
    bench = Bench()
    for tick in range(200):
        assert bench.tick(*[Event.OVERRUN] * (tick % 17 == 0)) <= Tier.WARN

"""Stretches of rollouts, and what the rollout says about gains."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from onboard.configs.events import Arm, Mode
from onboard.logging.export.clips import Clip, Cut, clips
from onboard.logging.preprocess.latency import shift_commands
from onboard.logging.preprocess.pipeline import Step
from onboard.logging.rollout import Rollout
from tests.logging.export.recorded import FADE_ROWS, KD, KP, NAMES, POLICY_START, ROBOT, data, run_info, write

TRACKING = (Mode.RAMP, Mode.HOLD, Mode.POLICY)


def cut(path: Path, **options: object) -> list[Clip]:
    with Rollout(path) as rollout:
        return list(clips(rollout, Cut(**options)))  # type: ignore[arg-type]


def spans(found: list[Clip]) -> list[tuple[int, int]]:
    return [(clip.first_row, clip.first_row + len(clip)) for clip in found]


def test_by_default_what_ran_under_a_policy_is_taken(rollout: Path) -> None:
    (clip,) = cut(rollout)
    assert spans([clip]) == [(POLICY_START, POLICY_START + 300)]
    assert clip.name == f"{rollout.stem}_{POLICY_START}"
    table = data()[POLICY_START : POLICY_START + 300]
    for name in ("q", "action_sent", "action_combined", "quat_wxyz"):
        np.testing.assert_array_equal(clip.track[name], table[name])


def test_without_a_policy_all_that_tracked_is_taken(tmp_path: Path) -> None:
    table = data()
    table["mode"][table["mode"] == Mode.POLICY] = Mode.HOLD
    table["policy"] = -1
    (clip,) = cut(write(tmp_path / "bench", table))
    assert spans([clip]) == [(20, len(table))]
    assert clip.contract is None
    assert "action_policy" not in clip.track


def test_stretches_end_at_breaks_arms_and_policies_and_short_ones_are_left_out(tmp_path: Path) -> None:
    table = data()
    start = POLICY_START
    table["tick"][start + 100 :] += 2
    table["arm"][start + 180 :] = Arm.DROP
    table["safety_flag"][start + 200] = 3
    path = write(tmp_path / "broken", table)
    assert spans(cut(path, min_s=0.1)) == [
        (start, start + 100),
        (start + 100, start + 180),
        (start + 180, start + 200),
        (start + 201, start + 300),
    ]
    assert spans(cut(path, min_s=1.0)) == [
        (start, start + 100),
        (start + 100, start + 180),
        (start + 201, start + 300),
    ]
    with_hold = spans(cut(path, modes=TRACKING, min_s=0.02))
    assert with_hold[0] == (20, start), "a policy takes over: another stretch"


def test_gains_are_those_that_went_out_and_nan_where_they_were_mixed(rollout: Path) -> None:
    ramp, walk, hold = cut(rollout, modes=TRACKING)
    np.testing.assert_array_equal(walk.track["kp"][FADE_ROWS:], np.tile(np.array(KP, np.float32), (296, 1)))
    np.testing.assert_array_equal(walk.track["kd"][FADE_ROWS:], np.tile(np.array(KD, np.float32), (296, 1)))
    assert np.isnan(walk.track["kp"][:FADE_ROWS]).all()
    scale = data()["kp_scale"][20:170, None]
    np.testing.assert_array_equal(ramp.track["kp"][:150], ROBOT.stand_kp * scale)
    blend = 15 - 1
    np.testing.assert_array_equal(np.isnan(ramp.track["kd"][150:]).any(1), np.arange(50) < blend)
    np.testing.assert_array_equal(ramp.track["kd"][-1], ROBOT.stand_kd)
    np.testing.assert_array_equal(hold.track["kd"][-1], ROBOT.stand_kd)


def test_gains_that_a_residual_changed_are_those_that_went_out(tmp_path: Path) -> None:
    residual = (
        "residual: {mode: invert, through: gains, gain_cap: 2.0, coefficients: "
        f"{{{NAMES[3]}: {{a: -0.2, b: 0.01}}, {NAMES[4]}: {{a: -0.7}}}}}}"
    )
    info = run_info()
    policy = msgspec.structs.replace(info.policies[0], residual=residual)
    table = data()
    table["arm"] = Arm.KEEP
    kept, plain = (
        cut(write(tmp_path / name, rows, msgspec.structs.replace(info, policies=(policy,))))[0].track
        for name, rows in (("keep", table), ("drop", data()))
    )
    row = FADE_ROWS + 1
    assert kept["kp"][row][3] == pytest.approx(KP[3] / 0.8, rel=1e-5)
    assert kept["kd"][row][3] == pytest.approx(KD[3] + KP[3] / 0.8 * 0.01, rel=1e-5)
    assert kept["kp"][row][4] == pytest.approx(KP[4] * 2.0, rel=1e-5)
    assert kept["kp"][row][5] == pytest.approx(KP[5], rel=1e-5)
    assert plain["kp"][row][3] == pytest.approx(KP[3], rel=1e-5)


def test_a_contract_of_another_version_costs_the_gains_and_nothing_else(tmp_path: Path) -> None:
    for k, text in enumerate(("terms: [gyro]\n", "::not yaml::{", "")):
        (clip,) = cut(write(tmp_path / str(k), info=run_info(text)))
        assert clip.contract is None
        assert np.isnan(clip.track["kp"]).all()
        assert np.isfinite(clip.track["q"]).all()


def test_preprocessing_is_applied_and_accounted_for(rollout: Path) -> None:
    (clip,) = cut(rollout, steps=[Step(shift_commands, {"by_s": 0.04})])
    table = data()[POLICY_START : POLICY_START + 300]
    np.testing.assert_array_equal(clip.track["q"], table["q"][2:])
    np.testing.assert_array_equal(clip.track["action_sent"], table["action_sent"][:-2])
    assert clip.done[0]["step"] == "shift_commands"
    assert '"ticks": 2' in clip.account()


@pytest.mark.parametrize("min_s", [6.1, 100])
def test_nothing_long_enough_is_nothing(rollout: Path, min_s: float) -> None:
    assert cut(rollout, min_s=min_s) == []

"""`onboard bench`: the whole protocol on a hanging simulated robot, and a rollout that says so."""

import json
from pathlib import Path

import numpy as np
import pytest

from onboard.cli import bench
from onboard.configs.bench import load_bench
from onboard.configs.events import Mode
from onboard.logging.rollout import Rollout
from onboard.policies.bench_signals import plan_course
from onboard.policies.excitation import Excitation, bench_bundle
from tests.policies.models import ROBOT, tiny_bundle

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    folder = tmp_path_factory.mktemp("bench")
    options = ["--gain", "0.6", "--latency-ms", "20", "--out", str(folder), "--json", str(folder / "r.json")]
    code = bench.run(["left_leg", "--sim", *options])
    result = json.loads((folder / "r.json").read_text())
    assert code == 0, result
    return result, Path(result["rollout"])


def test_the_targets_are_the_protocols(played: tuple[dict[str, object], Path]) -> None:
    course = plan_course(load_bench("left_leg"), ROBOT, 0.02)
    with Rollout(played[1]) as rollout:
        rows = np.flatnonzero(rollout.column("mode") == Mode.POLICY)
        step, target = rollout.column("step")[rows], rollout.column("target")[rows]
        later = step > 5  # the first ticks fade in
        wanted = course.pose[course.slots] + course.offsets[step[later]]
        assert np.allclose(target[later][:, course.slots], wanted, atol=1e-5)
        assert np.array_equal(rollout.policies[0].column("action_policy"), course.offsets[step])
        assert rollout.attributes["arm"] == "none"


def test_a_weak_and_late_robot_lags_behind(played: tuple[dict[str, object], Path]) -> None:
    errors = played[0]["tracking_rms_deg"]
    assert isinstance(errors, dict)
    assert sorted(errors) == sorted(load_bench("left_leg").segments[0].joints)
    assert all(5.0 < error < 15.0 for error in errors.values())


def test_the_full_rate_stream_is_there(played: tuple[dict[str, object], Path]) -> None:
    with Rollout(played[1]) as rollout:
        assert rollout.has_lowstate
        assert len(rollout.lowstate("q")) == pytest.approx(10 * len(rollout), rel=0.01)
        assert rollout.completeness == "complete"
        sent = rollout.column("send_ns")[rollout.column("mode") == Mode.POLICY]
        assert (np.diff(sent) == 20_000_000).all()


def test_nothing_trips_and_the_end_is_in_order(played: tuple[dict[str, object], Path]) -> None:
    assert played[0]["tripped"] == []
    with Rollout(played[1]) as rollout:
        modes = rollout.column("mode")
        order = [Mode(int(mode)) for mode in modes[np.flatnonzero(np.diff(modes, prepend=255))]]
    assert order == [Mode.DAMP, Mode.RAMP, Mode.HOLD, Mode.POLICY, Mode.HOLD, Mode.DAMP]


def test_a_protocol_takes_a_policys_gains(tmp_path: Path) -> None:
    tiny_bundle(tmp_path, [{"terms": [{"term": "joint_pos"}]}], 12)
    like = bench.with_gains_of(load_bench("left_leg"), str(tmp_path), "", ROBOT)
    player = Excitation(bench_bundle(like, ROBOT, 50.0), like, ROBOT)
    assert (player.kp == 100.0).all()
    assert (player.kd == 2.0).all()


@pytest.mark.parametrize(
    ("done_s", "said"),
    [(0.1, "sine 1/1, 4.0 s left of it"), (2.5, "sine 1/1, 2.0 s left of it"), (4.9, "rest")],
)
def test_the_line_says_what_plays_and_what_is_left(done_s: float, said: str) -> None:
    assert bench.describe_moment(load_bench("left_leg"), done_s) == said

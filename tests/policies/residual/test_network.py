"""Delta networks: the same term language as a policy's, asked about the action that is to be found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onboard.configs.errors import PolicyError
from onboard.configs.events import Arm
from tests.policies.models import JOINTS
from tests.policies.residual.support import SCALE, SLOTS, Bench, linear, network

ERROR: list[dict[str, Any]] = [{"term": "target_error"}]
THREE = {"frames": 3, "layout": "frame_major", "order": "newest_first", "current": True, "fill": "zeros"}


def diagonal(*values: float) -> np.ndarray:
    """Rows of terms, two ankles each; columns the two ankles."""
    return np.concatenate([np.eye(2) * value for value in values])


def test_the_fixed_point_undoes_the_delta(tmp_path: Path) -> None:
    bench = Bench(tmp_path, network(tmp_path, diagonal(-0.4), ERROR, iterations=20))
    wanted, found = bench.wanted(), bench.tick()
    answer = found - 0.4 * (found - bench.state.q)
    assert np.allclose(answer[SLOTS], wanted[SLOTS], atol=1e-4)


def test_one_iteration_subtracts_the_delta(tmp_path: Path) -> None:
    bench = Bench(tmp_path, network(tmp_path, diagonal(-0.4), ERROR, iterations=1))
    wanted, found = bench.wanted(), bench.tick()
    assert np.allclose((found - wanted)[SLOTS], 0.4 * (wanted - bench.state.q)[SLOTS], atol=1e-5)


def test_add_agrees_with_the_linear_delta(tmp_path: Path) -> None:
    terms = [{"term": "target_error"}, {"term": "joint_vel"}]
    net = Bench(tmp_path, network(tmp_path, diagonal(-0.4, 0.01), terms, mode="add"))
    plain = Bench(tmp_path / "linear", linear(mode="add"))
    assert np.allclose(net.tick(), plain.tick(), atol=1e-5)


def test_a_delta_in_raw_units_is_scaled_like_an_action(tmp_path: Path) -> None:
    terms = [{"term": "action"}]
    bench = Bench(tmp_path, network(tmp_path, diagonal(0.5), terms, mode="add", unit="raw"))
    wanted, found = bench.wanted(), bench.tick()
    assert np.allclose((found - wanted)[SLOTS], 0.5 * SCALE * bench.base[SLOTS], atol=1e-6)


@pytest.mark.parametrize(("mode", "arm"), [("invert", Arm.KEEP), ("invert", Arm.SHADOW), ("add", Arm.KEEP)])
def test_history_holds_the_actions_that_the_delta_is_about(tmp_path: Path, mode: str, arm: Arm) -> None:
    weights = np.zeros((6, 2))
    weights[4:] = np.eye(2) * 0.1  # the frame of two ticks ago
    data = network(tmp_path, weights, [], mode=mode, iterations=20)
    terms = [{"term": "target", "joints": data["joints"]}]
    data["network"]["inputs"]["obs"]["blocks"] = [{"terms": terms, **THREE}]
    bench = Bench(tmp_path, data, arm)
    asked = []
    for _ in range(4):
        bench.base = bench.base + 1.0
        found = bench.tick()
        asked.append((found if mode == "invert" else bench.wanted())[SLOTS])
        if arm is Arm.SHADOW:
            assert np.array_equal(asked[-1], bench.wanted()[SLOTS])
    sign = -1 if mode == "invert" else 1
    assert np.allclose(bench.slot.added[SLOTS] * SCALE, sign * 0.1 * asked[1], atol=1e-5)


def test_what_does_not_contract_is_not_inverted(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"by up to 0\.95, expected at most 0\.9"):
        Bench(tmp_path, network(tmp_path, diagonal(-0.95), ERROR))
    Bench(tmp_path, network(tmp_path, diagonal(-0.95), ERROR, mode="add"))


def test_an_iteration_that_moves_apart_drops_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path, network(tmp_path, diagonal(-0.4), ERROR, drop_on={"bound_saturated_s": 0.1}))
    delta = bench.slot._delta
    steep = np.float32(4.0)
    delta._unit = delta._unit * steep  # type: ignore[attr-defined]
    for _ in range(5):
        bench.tick()
    assert bench.slot.dropped == "the iteration does not settle"


def test_a_term_that_the_robot_can_not_measure_is_refused(tmp_path: Path) -> None:
    data = network(tmp_path, np.zeros((3, 2)), [])
    data["network"]["inputs"]["obs"]["blocks"] = [{"terms": [{"term": "base_lin_vel"}]}]
    with pytest.raises(PolicyError, match="base_lin_vel"):
        Bench(tmp_path, data)


def test_inputs_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    data = network(tmp_path, np.zeros((4, 2)), ERROR)
    with pytest.raises(PolicyError, match="add up to 2 numbers"):
        Bench(tmp_path, data)


def test_a_policy_may_not_ask_what_a_residual_asks(tmp_path: Path) -> None:
    from tests.policies.models import tiny_bundle

    with pytest.raises(PolicyError, match="for residuals alone"):
        tiny_bundle(tmp_path, [{"terms": [{"term": "target_error", "joints": JOINTS[:12]}]}], 12)

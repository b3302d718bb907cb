"""A network on ankles with friction and play: fitted, written, and run as the slot runs it."""

import tempfile
from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onboard.analysis.fit.features import Features, recorded_inputs, sample_features
from onboard.analysis.fit.fit import Data, Fit, Wish, fit
from onboard.analysis.fit.held import held_model
from onboard.analysis.fit.knobs import nominal_settings
from onboard.analysis.fit.network import NetworkFit, fit_network
from onboard.analysis.fit.network_file import write_network_residual
from onboard.analysis.fit.onnx_file import write_network
from onboard.analysis.fit.shooting import Shooter
from onboard.policies.residual.files import load_residual
from tests.analysis.fit.bench import FIRST, ROBOT, SECOND, record, trajectory
from tests.policies.models import random_state
from tests.policies.residual.support import Bench

ANKLE = np.array([4])
STICKY = (
    'gap.friction_nm={"*_ankle_*": 1.5}',
    'gap.backlash_rad={"*_ankle_*": 0.03}',
    'gap.command_latency_s={"*": 0.02}',
)


@pytest.fixture(scope="module")
def linear() -> Fit:
    """The linear delta of an ankle that sticks, plays and is late."""
    fitted, held_out = (trajectory(record(frequencies, STICKY)) for frequencies in (FIRST, SECOND))
    data = Data((fitted,), (held_out,), {"a.h5": "aa"}, {"b.h5": "bb"}, ANKLE)
    return fit(data, Wish((), kinds=("linear",)), ROBOT)


@pytest.fixture(scope="module")
def network(linear: Fit) -> NetworkFit:
    return fit_network(linear, linear.explained[0], hidden=12)


def test_it_describes_friction_and_play_better_than_the_linear_delta(
    linear: Fit, network: NetworkFit
) -> None:
    two = linear.explained[0]
    assert network.fitted.before_deg == pytest.approx(two.fitted.before_deg)
    assert network.fitted.after_deg < 0.8 * two.fitted.after_deg
    assert network.held_out.after_deg < 1.1 * two.held_out.after_deg
    assert network.held_out.after_deg < 0.5 * network.held_out.before_deg


def test_the_same_seed_gives_the_same_network(linear: Fit) -> None:
    fitted = linear.data.fitted
    one, same, other = (sample_features(fitted, ANKLE, linear.columns, 3, 8, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.weights, other.weights)
    with pytest.raises(ValueError, match="1 to 5"):
        sample_features(fitted, ANKLE, linear.columns, 6, 8, 0)


def test_hidden_units_rise_within_the_recorded_inputs(linear: Fit) -> None:
    features = sample_features(linear.data.fitted, ANKLE, linear.columns, 4, 20, 0)
    x = recorded_inputs(features, linear.data.fitted, ANKLE)
    looked = np.tanh(x @ features.weights + features.shift)
    assert (looked.min(axis=0) < -0.7).all()
    assert (looked.max(axis=0) > 0.7).all()


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 9), st.integers(0, 99))
def test_the_file_says_what_the_fit_says(joints: int, frames: int, hidden: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    inputs = 2 * joints * frames
    features = Features(
        np.arange(joints), frames, random.normal(0, 1, (inputs, hidden)), random.normal(0, 1, hidden)
    )
    output = random.normal(0, 0.1, (features.width, joints))
    seen = random.normal(0, 0.3, (1, frames, 2 * joints))
    with tempfile.TemporaryDirectory() as folder:
        path = write_network(Path(folder) / "delta.onnx", features, output, {"made": "for a test"})
        content = path.read_bytes()
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content)
    (answer,) = session.run(["delta"], {"obs": seen.reshape(1, -1).astype(np.float32)})
    np.testing.assert_allclose(answer, features.delta(seen, output[None]), rtol=1e-4, atol=1e-4)


def test_the_residual_loads_and_says_what_it_needs(linear: Fit, network: NetworkFit, tmp_path: Path) -> None:
    path = tmp_path / "ankle.yaml"
    written = write_network_residual(linear, network, ROBOT, path)
    bundle = load_residual(path, ROBOT, None)
    assert bundle.config == written
    assert bundle.config.joints == ("left_ankle_pitch_joint",)
    assert bundle.config.bound_rad == pytest.approx(1.25 * network.largest_rad(linear))
    assert bundle.config.provenance.heldout_after_deg == network.held_out.after_deg
    (spec,) = bundle.models["ankle.onnx"].info.inputs.values()
    assert spec.size == len(network.features.scale)


def test_a_network_of_zeros_changes_nothing(linear: Fit, network: NetworkFit) -> None:
    held = held_model(ROBOT, ANKLE)
    nothing = nominal_settings(1, len(held.slots))
    zeros = type(nothing)(nothing.joints, nothing.latency_s, 0 * network.output[None])
    with Shooter(held, linear.data.held_out, features=network.features) as shooter:
        np.testing.assert_array_equal(shooter.simulate(zeros), shooter.simulate(nothing))


def test_the_slot_asks_it_what_the_fit_asked(linear: Fit, network: NetworkFit, tmp_path: Path) -> None:
    written = write_network_residual(linear, network, ROBOT, tmp_path / "ankle.yaml")
    free = msgspec.structs.replace(written, mode="add", bound_rad=100.0, fade_s=0.0)
    bench = Bench(tmp_path, msgspec.to_builtins(free))
    random, slot, frames = np.random.default_rng(3), int(ANKLE[0]), network.features.frames
    seen = np.zeros((1, 0, 2))
    for tick in range(frames + 2):
        random_state(random, bench.state)
        error = bench.wanted()[slot] - bench.state.q[slot]
        newest = np.array([[[error, bench.state.dq[slot]]]])
        seen = newest.repeat(frames, axis=1) if tick == 0 else np.concatenate([newest, seen[:, :-1]], axis=1)
        expected = network.features.delta(seen, network.output[None])[0, 0]
        wanted, found = bench.wanted(), bench.tick()
        assert found[slot] - wanted[slot] == pytest.approx(expected, rel=1e-3, abs=1e-4)

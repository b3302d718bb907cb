"""A small policy, residuals for its ankles, and ticks to ask them about."""

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from onboard.configs.events import Arm
from onboard.policies.policy import Policy
from onboard.policies.residual.delta import Asked
from onboard.policies.residual.files import load_residual
from onboard.policies.residual.slot import ResidualSlot
from onboard.runtime.link import State
from tests.policies.models import LEGS, ROBOT, linear_model, random_state, tiny_bundle

ANKLES = (LEGS[4], LEGS[10])
SLOTS = [4, 10]
SCALE = 0.25
"""Of the small policy's action."""


def linear(a: float = -0.4, b: float = 0.01, **changes: Any) -> dict[str, Any]:
    """A linear residual of the ankles that acts at once."""
    plain = {
        "schema": 1,
        "name": "ankles",
        "kind": "linear",
        "mode": "invert",
        "unit": "rad",
        "joints": list(ANKLES),
        "coefficients": {name: {"a": a, "b": b} for name in ANKLES},
        "fade_s": 0.0,
    }
    return plain | changes


def network(
    folder: Path, weights: NDArray[Any], terms: list[dict[str, Any]], **changes: Any
) -> dict[str, Any]:
    """A residual whose network is one matrix over terms of the ankles."""
    linear_model(folder / "delta.onnx", weights, output="delta")
    joints = [{"joints": list(ANKLES)} | term for term in terms]
    inputs = {"obs": {"blocks": [{"terms": joints}]}}
    own = {
        "kind": "onnx",
        "coefficients": {},
        "bound_rad": 1.0,
        "network": {"model": "delta.onnx", "output": "delta", "inputs": inputs},
    }
    return linear() | own | changes


class Bench:
    """One policy, one slot, and a state that the caller may change."""

    def __init__(self, folder: Path, data: dict[str, Any], arm: Arm = Arm.KEEP, seed: int = 0) -> None:
        bundle = tiny_bundle(folder / "policy", [{"terms": [{"term": "joint_pos"}]}], 12)
        self.policy = Policy(bundle, ROBOT)
        path = folder / "residual.yaml"
        path.write_text(yaml.safe_dump({"residual": data}))
        self.slot = ResidualSlot(load_residual(path, ROBOT, bundle.contract), self.policy, ROBOT, arm)
        self.state: State = random_state(np.random.default_rng(seed))
        self.base: NDArray[np.float32] = np.random.default_rng(seed + 1).normal(size=12).astype(np.float32)
        self.contact = np.ones(2, np.int8)
        self.step = 0
        self.policy.reset(self.state)

    def ask(self) -> Asked:
        """This tick."""
        return Asked(self.state, self.policy.neutral_command(), self.step, self.contact)

    def tick(self) -> NDArray[np.float32]:
        """(29,) rad: the targets of one accepted tick."""
        combined = self.slot.combine(self.ask(), self.base)
        self.slot.commit()
        self.step += 1
        return np.array(self.policy.target(combined))

    def wanted(self) -> NDArray[np.float32]:
        """(29,) rad: the targets without a residual."""
        return np.array(self.policy.target(self.base))

"""A delta network: its inputs from the policies' term language, its inverse by fixed point."""

from itertools import pairwise

import msgspec
import numpy as np

from onboard.configs.errors import PolicyError
from onboard.configs.robot import RobotConfig
from onboard.policies.checks import check_contract
from onboard.policies.command import MotionCommand
from onboard.policies.contract import Action, Contract, Graph
from onboard.policies.graph import GraphRunner
from onboard.policies.layout import constant_name, place, signal_of, terms_of
from onboard.policies.model import Model
from onboard.policies.residual.contract import Network, Residual
from onboard.policies.residual.delta import Asked, Float32Array, Question
from onboard.policies.residual.masks import Mask
from onboard.policies.signals import Signals
from onboard.policies.term_checks import RESIDUAL_GRAPH
from onboard.runtime.link import State

SETTLED_RAD = 1e-4
"""The fixed point is found when an iteration moves no joint further."""
CONTRACTION = 0.9
"""Largest gain of a fixed point that is accepted: 20 iterations then still reach a tenth."""


def network_contract(network: Network, config: Residual, contract: Contract) -> Contract:
    """The network as a contract of one graph, with the policy's joints, default pose, IMU and clocks."""
    graph = Graph(
        model=network.model,
        inputs=network.inputs,
        action=Action(output=network.output, joints=config.joints, base="zero", scale=1.0),
    )
    return msgspec.structs.replace(
        contract,
        name=config.name,
        graphs={RESIDUAL_GRAPH: graph},
        start_rad=contract.default_rad,
        motion=None,
        target_clip=None,
        providers={},
    )


class NetworkDelta:
    """Asks the network about an action, or for the action that it corrects to the one wanted.

    Args:
        config: mode, unit, iterations.
        network: its inputs and its output.
        model: its file.
        robot: for the joints' slots.
        contract: the policy's.
        mask: which elements and slots are touched.

    Raises:
        PolicyError: the inputs do not fit the model, or ask for what is not there.
    """

    known = True

    def __init__(
        self,
        config: Residual,
        network: Network,
        model: Model,
        robot: RobotConfig,
        contract: Contract,
        mask: Mask,
    ) -> None:
        own = network_contract(network, config, contract)
        check_contract(own, robot, {RESIDUAL_GRAPH: model.info}, f"residual {config.name}")
        terms = terms_of(own, RESIDUAL_GRAPH)
        constants = {constant_name(term): term.values for term in terms if term.term == "constant"}
        used = {signal_of(term, RESIDUAL_GRAPH) for term in terms}
        self._signals = Signals(own, robot, used, None, constants, {})
        placed = place(own, RESIDUAL_GRAPH, {})
        widths = {item.input: item.stop for item in placed}
        obs = np.zeros(sum(widths.values()), np.float32)
        self._runner = GraphRunner(own, RESIDUAL_GRAPH, model, robot, self._signals, placed, obs)
        self._answer = self._runner.outputs[network.output]
        self._mask = mask
        self._invert = config.mode == "invert"
        self._iterations = config.iterations
        self._unit: Float32Array = mask.scale if config.unit == "raw" else np.ones_like(mask.scale)
        names = ("asked_action", "asked_target", "asked_error")
        self._action, self._target, self._error = map(self._signals.view, names)
        self._asked, self._x, self._next, self._moved = np.zeros((4, len(mask.slots)), np.float32)
        self._zero = np.zeros_like(self._x)
        self._at_base = tuple(np.zeros_like(self._x) for _ in names)
        self._step = 0
        self.settled = True

    def reset(self) -> None:
        """Forget all frames."""
        self._signals.reset(State(), 0)
        self._runner.reset()

    def look(self, question: Question) -> None:
        """Take one tick in."""
        state, command, step, _ = question.asked
        self._step = step
        self._signals.update(state, command, step)
        self._action[self._mask.driven] = question.raw
        self._target[:] = question.target
        np.subtract(question.target, state.q, out=self._error)
        for kept, view in zip(self._at_base, (self._action, self._target, self._error), strict=True):
            view.take(self._mask.slots, out=kept, mode="clip")

    def correction(self) -> Float32Array:
        """(n,) rad."""
        self.settled = True
        if not self._invert:
            return self._delta(self._zero, self._x)
        return self._solve()

    def remember(self, applied: Float32Array) -> None:
        """The frame with the action that the robot got becomes history."""
        self._ask(applied if self._invert else self._zero)
        self._runner.observe(self._step, -1)
        self._signals.actions[RESIDUAL_GRAPH][:] = self._answer
        self._signals.commit()
        self._runner.commit()

    def warm(self) -> None:
        """Build and run once; the next `look` overwrites what that leaves."""
        self._runner.warm()

    def gain(self, question: Question) -> float:
        """Largest factor by which one iteration changes a small difference of two actions (2-norm)."""
        self.look(question)
        small, width = 1e-3, len(self._x)
        here = self._delta(self._zero, self._x).copy()
        steps = np.eye(width, dtype=np.float32) * np.float32(small)
        rows = [(self._delta(step, self._x) - here) / small for step in steps]
        return float(np.linalg.norm(np.array(rows), 2))

    def _solve(self) -> Float32Array:
        """`x` with `x = -Δ(a + x)`, from 0 on."""
        x, other, moved = self._x, self._next, self._moved
        x[:] = 0.0
        moves = []
        for _ in range(self._iterations):
            np.negative(self._delta(x, other), out=other)
            np.subtract(other, x, out=moved)
            moves.append(float(np.abs(moved).max()))
            x[:] = other
            if moves[-1] < SETTLED_RAD:
                break
        self.settled = moves[-1] < SETTLED_RAD or all(later < sooner for sooner, later in pairwise(moves))
        return x

    def _delta(self, x: Float32Array, out: Float32Array) -> Float32Array:
        """What the network says about the policy's action with `x` (n,), rad, added."""
        self._ask(x)
        self._runner.observe(self._step, -1)
        self._runner.run()
        return np.multiply(self._answer, self._unit, out=out)

    def _ask(self, x: Float32Array) -> None:
        slots, asked = self._mask.slots, self._asked
        action, target, error = self._at_base
        np.divide(x, self._mask.scale, out=asked)
        np.add(action, asked, out=asked)
        self._action[slots] = asked
        np.add(target, x, out=asked)
        self._target[slots] = asked
        np.add(error, x, out=asked)
        self._error[slots] = asked


def check_contracts(delta: NetworkDelta, mask: Mask, contract: Contract, robot: RobotConfig) -> float:
    """Refuse a network whose inverse can't be found by iteration; the largest gain seen.

    Probed at 64 seeded states about the default pose: joints ±0.3 rad, ±3 rad/s, targets ±0.3 rad away.

    Raises:
        PolicyError: it does not contract.
    """
    random = np.random.default_rng(0)
    state, command = State(), MotionCommand(contract.commands.height_m)
    default = np.zeros(len(robot.joints), np.float32)
    default[[robot.slot(joint) for joint in contract.joints]] = contract.default_rad
    gains, contact = [], np.ones(2, np.int8)
    for _ in range(64):
        state.q[:] = default + random.uniform(-0.3, 0.3, state.q.size)
        state.dq[:] = random.uniform(-3.0, 3.0, state.dq.size)
        state.gyro_body[:] = random.uniform(-1.0, 1.0, 3)
        target = (state.q + random.uniform(-0.3, 0.3, state.q.size)).astype(np.float32)
        raw = mask.raw(target - default)
        delta.reset()
        gains.append(delta.gain(Question(Asked(state, command, 0, contact), raw, target)))
    delta.reset()
    worst = max(gains)
    if not worst <= CONTRACTION:
        raise PolicyError(
            f"residual: mode invert: an iteration of the network changes a difference of actions by up to "
            f"{worst:.2f}, expected at most {CONTRACTION}; a fixed point can't invert it. Fine-tune the "
            "policy in the corrected simulator, or fit a residual that is less steep"
        )
    return worst

"""What is mutated, and the fast tests that must notice."""

from typing import NamedTuple


class Target(NamedTuple):
    """One file and its tests, the quickest to fail first."""

    path: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        """Its import name."""
        return self.path.removesuffix(".py").replace("/", ".")


_GATE = tuple(
    f"tests/safety/test_{name}.py"
    for name in ("gate_way", "gate_policy", "gate_flags", "gate_events", "gate_memory")
)

TARGETS = (
    Target("onboard/safety/gate.py", _GATE),
    Target("onboard/runtime/modes.py", ("tests/runtime/test_modes.py",)),
    Target("onboard/safety/limits.py", ("tests/safety/test_limits.py", "tests/safety/test_gate_policy.py")),
    Target("onboard/safety/conditions.py", ("tests/safety/test_conditions.py", *_GATE)),
    Target("onboard/safety/debounce.py", ("tests/safety/test_debounce.py", *_GATE)),
    Target("onboard/safety/events.py", ("tests/safety/test_events.py", "tests/safety/test_gate_flags.py")),
    Target("onboard/runtime/gateway_core.py", ("tests/runtime/test_gateway_core.py",)),
)

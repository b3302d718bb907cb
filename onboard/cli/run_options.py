"""Options that `run` and `try` share, as tyro reads them."""

from typing import Annotated, Any

import msgspec
import tyro

from onboard.configs.loader import convert
from onboard.configs.run import RunConfig

Policy = Annotated[str, tyro.conf.Positional]
Repeated = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


def also(choices: tuple[str, ...]) -> list[dict[str, str]]:
    """Further policies as given on the command line: PATH or PATH@PRESET."""
    return [
        {"policy": path, "preset": preset}
        for path, _, preset in (choice.partition("@") for choice in choices)
    ]


def arm(residual: str, given: str) -> str:
    """The arm of a run: as given; without a word `keep` where there is a residual."""
    return given or ("keep" if residual else "none")


def gap_overrides(gain: float, latency_ms: float, friction_nm: float) -> tuple[str, ...]:
    """Overrides of the simulator's configuration for the knobs that are not at their neutral value."""
    knobs = {
        "gain": (gain, 1.0),
        "command_latency_s": (latency_ms / 1000, 0.0),
        "friction_nm": (friction_nm, 0.0),
    }
    return tuple(
        f"gap.{name}={{'*': {value!r}}}" for name, (value, neutral) in knobs.items() if value != neutral
    )


def run_config(**values: Any) -> RunConfig:  # noqa: ANN401 - each is checked against its field
    """A run's configuration from command-line values, checked like a file.

    Raises:
        ConfigError: a value is out of range; the message names the option.
    """
    plain = {key: msgspec.to_builtins(value) for key, value in values.items()}
    return convert(plain, RunConfig, "command line")

"""What an episode of an A/B experiment plays."""

from pathlib import Path

from onboard.cli.trial import whole_motion
from onboard.configs.errors import ConfigError
from onboard.configs.script import ScriptConfig, Step, load_script
from onboard.runtime.assembly import Plan

WALKS = {"slow": (0.3, 0.0, 0.0), "fast": (0.8, 0.0, 0.0), "turn": (0.2, 0.0, 0.5)}
"""vx, vy in m/s and wz in rad/s, each cut to the policy's command range."""
STAND_S = 1.0


def choose_protocols(names: tuple[str, ...], plan: Plan, seconds: float) -> dict[str, ScriptConfig]:
    """Name to script; without names the motion of a tracking policy, else every walk.

    Raises:
        ConfigError: a protocol does not fit the policy, or there is no such script.
    """
    motion_s = plan.bundle.motion_seconds
    wanted = names or (tuple(WALKS) if motion_s is None else ("motion",))
    return {_title(name): _script(name, plan, seconds, motion_s) for name in wanted}


def _title(name: str) -> str:
    return Path(name).stem


def _script(name: str, plan: Plan, seconds: float, motion_s: float | None) -> ScriptConfig:
    if name == "motion":
        if motion_s is None:
            raise ConfigError(
                f"protocol motion: policy {plan.bundle.name} follows no motion; use slow or fast"
            )
        return whole_motion(min(seconds, motion_s + 0.5))
    if name not in WALKS:
        return load_script(name)
    if motion_s is not None:
        raise ConfigError(f"protocol {name}: policy {plan.bundle.name} follows a motion; use motion")
    ranges = plan.command_ranges()
    velocity = tuple(
        min(max(asked, low), high) for asked, (low, high) in zip(WALKS[name], ranges, strict=True)
    )
    return ScriptConfig(
        (
            Step(press="start", until="ramp"),
            Step(until="hold"),
            Step(press="go", velocity=(0.0, 0.0, 0.0), until="policy", for_s=STAND_S),
            Step(velocity=velocity, for_s=max(STAND_S, seconds - STAND_S)),
        )
    )

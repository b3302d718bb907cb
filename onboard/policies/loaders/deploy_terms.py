"""Observation terms of a deploy.yaml as blocks of a contract."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from onboard.configs.errors import PolicyError
from onboard.configs.loader import convert
from onboard.policies.inputs import Pair
from onboard.policies.loaders.blocks import Parts, history_block, scaled_terms
from onboard.policies.loaders.draft import Data

_TERMS: dict[str, Parts] = {
    "base_ang_vel": (("gyro", 3),),
    "base_lin_vel": (("base_lin_vel", 3),),
    "projected_gravity": (("gravity", 3),),
    "joint_pos": (("joint_pos_absolute", 0),),
    "joint_pos_rel": (("joint_pos", 0),),
    "joint_vel": (("joint_vel", 0),),
    "joint_vel_rel": (("joint_vel", 0),),
    "last_action": (("last_action", 0),),
    "velocity_commands": (("velocity", 3),),
    "keyboard_velocity_commands": (("velocity", 3),),
    "gait_phase": (("gait_sin", 1), ("gait_cos", 1)),
    "motion_command": (("ref_joint_pos", 0), ("ref_joint_vel", 0)),
    "motion_joint_pos": (("ref_joint_pos", 0),),
    "motion_joint_vel": (("ref_joint_vel", 0),),
    "motion_anchor_ori_b": (("anchor_orientation", 6),),
}

SWITCHES = ("use_gym_history", "scale_first")
"""Keys that stand among the terms of a group and are none."""


class TermConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`observations.<term>`."""

    scale: tuple[float, ...] | float | None
    params: dict[str, Any] | None = None
    clip: Pair | None = None
    history_length: Annotated[int, Meta(ge=0)] = 1
    scale_first: bool | None = None


class Switches(Struct, frozen=True, forbid_unknown_fields=True):
    """How a whole group is laid out.

    Attributes:
        use_gym_history: frame after frame; else term after term.
        scale_first: of the terms that do not say: the scale comes before the clip.
    """

    use_gym_history: bool = False
    scale_first: bool = False


class GroupReader:
    """Turns groups of terms into blocks, and notes what they need from the rest of the contract.

    Attributes:
        gait_period_s: of the gait clock that a term asks for, None where none does.
        follows_motion: a term shows a reference motion.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.gait_period_s: float | None = None
        self.follows_motion = False

    def blocks(self, group: dict[str, Any], outer: Data) -> list[Data]:
        """Blocks of one input, in the order of the file.

        Args:
            group: its terms, and its switches.
            outer: switches that hold where the group has none.

        Raises:
            ConfigError: a key or value of the wrong type.
            PolicyError: an unknown term, or histories that a frame-major layout can't hold.
        """
        where = f"{self._where}: observations"
        own = {key: group[key] for key in SWITCHES if key in group}
        switches = convert(outer | own, Switches, where)
        plain = {name: entry for name, entry in group.items() if name not in SWITCHES}
        configs = convert(plain, dict[str, TermConfig], where)
        terms = {name: self._terms(name, config, switches) for name, config in configs.items()}
        frames = {name: max(config.history_length, 1) for name, config in configs.items()}
        if not switches.use_gym_history:
            return [history_block(terms[name], frames[name]) for name in configs]
        if len(set(frames.values())) > 1:
            raise PolicyError(f"{self._where}: use_gym_history with different history lengths {frames}")
        flat = [term for name in configs for term in terms[name]]
        return [history_block(flat, next(iter(frames.values())), frame_major=True)]

    def _terms(self, name: str, config: TermConfig, switches: Switches) -> list[Data]:
        parts = _TERMS.get(name)
        if parts is None:
            raise PolicyError(
                f"{self._where}: unknown observation '{name}'; there are: {', '.join(_TERMS)}; for others "
                "write a contract.yaml"
            )
        if name == "gait_phase":
            self._note_gait(config)
        self.follows_motion |= name.startswith("motion_")
        scale_first = switches.scale_first if config.scale_first is None else config.scale_first
        scale = 1.0 if config.scale is None else config.scale
        where = f"{self._where}: observations.{name}"
        return scaled_terms(where, parts, scale, config.clip, not scale_first)

    def _note_gait(self, config: TermConfig) -> None:
        period = (config.params or {}).get("period")
        if not isinstance(period, float | int) or period <= 0:
            key = f"{self._where}: observations.gait_phase.params.period"
            raise PolicyError(f"{key}: expected a positive number, s; found {period}")
        self.gait_period_s = float(period)

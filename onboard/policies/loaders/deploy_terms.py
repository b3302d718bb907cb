"""Observation terms of a deploy.yaml as blocks of a contract."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from onboard.configs.errors import PolicyError
from onboard.policies.inputs import Pair
from onboard.policies.loaders.draft import Data

_TERMS: dict[str, tuple[tuple[str, int], ...]] = {
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
"""The file's terms to ours with their widths; 0: an equal share of what the file's scale covers."""


class TermConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`observations.<term>`."""

    scale: tuple[float, ...] | float | None
    params: dict[str, Any] | None = None
    clip: Pair | None = None
    history_length: Annotated[int, Meta(ge=0)] = 1
    scale_first: bool = False


class GroupReader:
    """Turns groups of terms into blocks, and notes what they need from the rest of the contract.

    Attributes:
        gait_period_s: of the gait clock that a term asks for, None where none does.
        follows_motion: a term shows a reference motion.
    """

    def __init__(self, where: str, frame_major: bool) -> None:
        self._where = where
        self._frame_major = frame_major
        self.gait_period_s: float | None = None
        self.follows_motion = False

    def blocks(self, group: dict[str, TermConfig]) -> list[Data]:
        """Blocks of one input, in the order of the file.

        Raises:
            PolicyError: an unknown term, or histories that a frame-major layout can't hold.
        """
        terms = {name: self._terms(name, config) for name, config in group.items()}
        frames = {name: max(config.history_length, 1) for name, config in group.items()}
        if not self._frame_major:
            return [_block(terms[name], frames[name]) for name in group]
        if len(set(frames.values())) > 1:
            raise PolicyError(f"{self._where}: use_gym_history with different history lengths {frames}")
        return [_block([term for name in group for term in terms[name]], next(iter(frames.values())))]

    def _terms(self, name: str, config: TermConfig) -> list[Data]:
        parts = _TERMS.get(name)
        if parts is None:
            raise PolicyError(
                f"{self._where}: unknown observation '{name}'; there are: {', '.join(_TERMS)}; for others "
                "write a contract.yaml"
            )
        if name == "gait_phase":
            self._note_gait(config)
        self.follows_motion |= name.startswith("motion_")
        return self._scaled(name, config, parts)

    def _note_gait(self, config: TermConfig) -> None:
        period = (config.params or {}).get("period")
        if not isinstance(period, float | int) or period <= 0:
            key = f"{self._where}: observations.gait_phase.params.period"
            raise PolicyError(f"{key}: expected a positive number, s; found {period}")
        self.gait_period_s = float(period)

    def _scaled(self, name: str, config: TermConfig, parts: tuple[tuple[str, int], ...]) -> list[Data]:
        scale = config.scale if config.scale is not None else 1.0
        terms = []
        start = 0
        for term, width in parts:
            factors: float | list[float]
            if isinstance(scale, float):
                factors = scale
            else:
                stop = start + (width or len(scale) // len(parts))
                factors = list(scale[start:stop])
                start = stop
            terms.append(_term(term, factors, config))
        if not isinstance(scale, float) and start != len(scale):
            raise PolicyError(
                f"{self._where}: observations.{name}.scale has {len(scale)} numbers, expected {start}"
            )
        return terms


def _term(term: str, scale: float | list[float], config: TermConfig) -> Data:
    data: Data = {"term": term}
    if scale != 1.0:
        data["scale"] = scale
    if config.clip is not None:
        data |= {"clip": list(config.clip), "clip_first": not config.scale_first}
    return data


def _block(terms: list[Data], frames: int) -> Data:
    """History counts the present frame, oldest first, filled with the first frame after a reset.

    Several of our terms that are one of the file's stay together within each frame.
    """
    if frames == 1:
        return {"terms": terms}
    return {
        "terms": terms,
        "frames": frames,
        "layout": "frame_major" if len(terms) > 1 else "term_major",
        "order": "oldest_first",
        "current": True,
        "fill": "first_frame",
    }

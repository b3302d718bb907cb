"""What a loader hands over: contract data still to be checked, and what it had to fill in."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import inside

Data = dict[str, Any]


@dataclass
class Draft:
    """A contract on its way.

    Attributes:
        data: plain data in the shape of `Contract`.
        folder: what paths in it are relative to.
        where: names the source in messages.
        format: the loader's name.
        preset: name of the preset used, or None.
        defaults: what no file said and how it was filled in.
        needs: dotted keys that must come from the user, with what they mean.
        given: the user's own `key=value`.
    """

    data: Data
    folder: Path
    where: str
    format: str
    preset: str | None = None
    defaults: list[str] = field(default_factory=list)
    needs: dict[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    def file(self, name: str, key: str) -> Path:
        """Path of a file that a key of the contract names: in the folder, or where the user's own word says.

        Raises:
            PolicyError: the bundle itself names a file outside its folder.
        """
        return self.folder / name if f"{key}={name}" in self.given else inside(self.folder, name, key)

    def complete(self) -> list[str]:
        """Fill in what may be left out; returns one sentence for everything ever filled in.

        Raises:
            PolicyError: something that differs from file to file was not given.
        """
        data, said = self.data, self.defaults
        for key, why in self.needs.items():
            if not has(data, key):
                raise PolicyError(f"{self.where}: missing '{key}': {why}; give --set {key}=VALUE")
        motion = data.get("motion")
        source = motion.get("source") if isinstance(motion, dict) else None
        if "start_rad" not in data and source in ("file", "onnx"):
            said.append("start_rad: not stated, the first frame of the reference motion taken")
        elif "start_rad" not in data and isinstance(data.get("default_rad"), list | tuple):
            data["start_rad"] = list(data["default_rad"])
            said.append("start_rad: not stated, default_rad taken: the robot starts in the default pose")
        for key, origin, reason in (
            ("hold_rad", "default_rad", "joints that are not driven hold the default pose"),
            ("observed_joints", "joints", "joint terms list the joints in the contract's order"),
        ):
            if data.get(key) is None and isinstance(data.get(origin), list | tuple):
                data[key] = list(data[origin])
                said.append(f"{key}: not stated, {origin} taken: {reason}")
        return said


def refuse_preset(preset: str | None, holder: str) -> None:
    """A format that says everything itself takes no preset beside it.

    Raises:
        PolicyError: one was given.
    """
    if preset is not None:
        raise PolicyError(
            f"--preset {preset}: this policy has a {holder}, which says everything; leave it out"
        )


def merge(base: Data, patch: Data) -> Data:
    """`base` with `patch` laid over it; mappings are merged, all else is replaced. Neither is changed.

    A graph that the patch sets to null is taken out.
    """
    merged = dict(base)
    for key, value in patch.items():
        known = merged.get(key)
        if value is None and isinstance(known, dict):
            del merged[key]
            continue
        merged[key] = merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def has(data: Data, key: str) -> bool:
    """A dotted key stands in nested mappings and is not null."""
    node: Any = data
    for part in key.split("."):
        if not isinstance(node, dict) or node.get(part) is None:
            return False
        node = node[part]
    return True

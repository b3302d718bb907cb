"""What lies at the path that a user named: an ONNX file, or a folder with one and what belongs to it."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import inside
from onboard.policies.model import Model, read_model

_DEPLOY = ("params/deploy.yaml", "param/deploy.yaml")


@dataclass(frozen=True)
class BundleFiles:
    """Files of one bundle.

    Attributes:
        path: as the user gave it.
        folder: of the bundle.
        models: its ONNX files.
    """

    path: Path
    folder: Path
    models: tuple[Path, ...]

    @property
    def name(self) -> str:
        """What to call the policy when nothing else names it: the folder, or the file."""
        own = self.path.suffix == ".onnx" and self.path.parent.name != "exported"
        return self.path.stem if own else self.folder.resolve().name

    @property
    def contract_yaml(self) -> Path | None:
        """Our own contract, where there is one."""
        return _within(self.folder, "contract.yaml")

    @property
    def deploy_yaml(self) -> Path | None:
        """unitree_rl_lab's description, where there is one."""
        found = (_within(self.folder, name) for name in _DEPLOY)
        return next((path for path in found if path is not None), None)

    @cached_property
    def model(self) -> Model:
        """The one ONNX file of the bundle.

        Raises:
            PolicyError: there is none, or more than one.
        """
        if len(self.models) == 1:
            return read_model(self.models[0])
        if not self.models:
            raise PolicyError(f"{self.folder}: no ONNX file in it nor in its 'exported' folder")
        names = ", ".join(str(model.relative_to(self.folder)) for model in self.models)
        raise PolicyError(
            f"{self.folder}: {len(self.models)} ONNX files ({names}); give the path of one, or write a "
            "contract.yaml that names them"
        )


def find_files(path: Path) -> BundleFiles:
    """Look at a path. An ONNX file that the user named may be a link; the bundle is then around its target.

    Raises:
        PolicyError: nothing is there, it is neither an ONNX file nor a folder, or a file in the folder is a
            link that leads out of it.
    """
    if os.path.isdir(path):
        models = sorted(path.glob("*.onnx")) or sorted(path.glob("exported/*.onnx"))
        return BundleFiles(
            path, path, tuple(_checked(path, str(model.relative_to(path))) for model in models)
        )
    if not os.path.exists(path):
        raise PolicyError(f"{path}: not found; give a folder, an ONNX file or a shipped name")
    if path.suffix != ".onnx":
        raise PolicyError(f"{path}: not an ONNX file; give a folder, an ONNX file or a shipped name")
    model = path.resolve() if path.is_symlink() else path
    folder = model.parent.parent if model.parent.name == "exported" else model.parent
    return BundleFiles(path, folder, (model,))


def _within(folder: Path, name: str) -> Path | None:
    return _checked(folder, name) if os.path.exists(folder / name) else None


def _checked(folder: Path, name: str) -> Path:
    return inside(folder, name, "the bundle")

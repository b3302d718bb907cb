"""What lies at the path that a user named: an ONNX file, or a folder with one and what belongs to it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onboard.configs.errors import PolicyError
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
        own = self.folder / "contract.yaml"
        return own if own.exists() else None

    @property
    def deploy_yaml(self) -> Path | None:
        """unitree_rl_lab's description, where there is one."""
        return next((self.folder / name for name in _DEPLOY if (self.folder / name).exists()), None)

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
    """Look at a path.

    Raises:
        PolicyError: nothing is there, or it is neither an ONNX file nor a folder.
    """
    if path.is_dir():
        models = sorted(path.glob("*.onnx")) or sorted(path.glob("exported/*.onnx"))
        return BundleFiles(path, path, tuple(models))
    if not path.exists():
        raise PolicyError(f"{path}: not found; give a folder, an ONNX file or a shipped name")
    if path.suffix != ".onnx":
        raise PolicyError(f"{path}: not an ONNX file; give a folder, an ONNX file or a shipped name")
    folder = path.parent.parent if path.parent.name == "exported" else path.parent
    return BundleFiles(path, folder, (path,))

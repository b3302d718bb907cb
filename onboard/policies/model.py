"""One ONNX file of a bundle: where it is, what it says about itself, what identifies it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from onboard.policies.session import ModelInfo, external_files, inspect_model


@dataclass(frozen=True)
class Model:
    """An ONNX file with the files that hold its weights.

    Attributes:
        path: of the ONNX file.
        info: names, shapes, types and metadata.
        sha256: per file, the ONNX file first.
    """

    path: Path
    info: ModelInfo
    sha256: dict[Path, str]

    @property
    def digest(self) -> str:
        """sha256 of the ONNX file itself."""
        return self.sha256[self.path]


def read_model(path: Path) -> Model:
    """Inspect one file and its companions.

    Raises:
        PolicyError: missing, damaged, or its weights are.
    """
    companions = external_files(path)
    return Model(path, inspect_model(path), {file: file_sha256(file) for file in (path, *companions)})


def file_sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

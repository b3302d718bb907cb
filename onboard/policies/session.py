"""ONNX Runtime for a control loop: one thread, nothing spinning, inputs and outputs bound to our arrays."""

import math
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from onboard.configs.errors import PolicyError
from onboard.configs.untrusted import inside, limited_memory, read_whole
from onboard.policies.onnx_parts import external_locations

Array = NDArray[np.generic]

DTYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}

LARGEST_PORT = 1_000_000
"""Numbers of one input or output; no policy has nearly as many."""


class Port(NamedTuple):
    """One input or output of a graph; the batch axis, and any other that is free, is 1."""

    shape: tuple[int, ...]
    dtype: type[np.generic]

    @property
    def size(self) -> int:
        """How many numbers."""
        return math.prod(self.shape)


class ModelInfo(NamedTuple):
    """What an ONNX file says about itself."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]
    metadata: dict[str, str]


def external_files(path: Path) -> list[Path]:
    """Files beside an ONNX file that hold its weights.

    Raises:
        PolicyError: the file can't be read, or one of the weights' files is missing or lies elsewhere.
    """
    try:
        content = read_whole(path)
    except OSError as error:
        raise PolicyError(
            f"{path}: can't be read ({error.strerror}); give the path of an ONNX file"
        ) from error
    try:
        names = sorted(external_locations(content))
    except (IndexError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: can't be read as an ONNX file ({error}); export it again") from error
    for name in names:
        if not inside(path.parent, name, f"the external data of {path.name}").is_file():
            raise PolicyError(f"{path}: keeps its weights in '{name}', which is missing; copy it beside")
    return [path.parent / name for name in names]


def inspect_model(path: Path) -> ModelInfo:
    """Read names, shapes, types and metadata of an ONNX file.

    Raises:
        PolicyError: missing, damaged, or with axes that can't be resolved.
    """
    external_files(path)
    session = _open(path, optimise=False)
    try:
        return ModelInfo(
            inputs={node.name: _port(path, node) for node in session.get_inputs()},
            outputs={node.name: _port(path, node) for node in session.get_outputs()},
            metadata=dict(session.get_modelmeta().custom_metadata_map),
        )
    except UnicodeDecodeError as error:
        raise PolicyError(
            f"{path}: has a name or metadata that is no text ({error}); export it again"
        ) from error


class OnnxSession:
    """One graph, ready to run on arrays that stay where they are.

    Attributes:
        inputs, outputs: by name; write the inputs, `run`, read the outputs. Outputs that are not
            wanted are not computed into anything of ours.
    """

    def __init__(self, path: Path, inputs: Mapping[str, Array], outputs: tuple[str, ...]) -> None:
        """Load and bind.

        Args:
            path: ONNX file.
            inputs: arrays that the caller fills, flat, of the right size and type; every input of the
                graph must be there.
            outputs: names of the outputs that are read.

        Raises:
            PolicyError: the file can't be loaded.
        """
        self.path = path
        self._session = _open(path, optimise=True)
        self._binding = self._session.io_binding()
        self._keep: list[object] = []
        self.inputs = dict(inputs)
        self.outputs: dict[str, Array] = {}
        for node in self._session.get_inputs():
            array = self.inputs[node.name].reshape(_port(path, node).shape)
            self._binding.bind_ortvalue_input(node.name, self._value(array))
        for node in self._session.get_outputs():
            if node.name not in outputs:
                continue
            port = _port(path, node)
            array = np.zeros(port.shape, port.dtype)
            self.outputs[node.name] = array.reshape(-1)
            self._binding.bind_ortvalue_output(node.name, self._value(array))
        self._run = self._session.run_with_iobinding

    def run(self) -> None:
        """Run once.

        Raises:
            PolicyError: the runtime failed inside the graph.
        """
        try:
            self._run(self._binding)
        except Exception as error:  # ONNX Runtime's exceptions share no base but this one
            raise PolicyError(f"{self.path.name}: inference failed: {error}") from error

    def run_within(self, seconds: float) -> None:
        """Run once, with an end to it; for the first run of a graph that nobody knows.

        Raises:
            PolicyError: the runtime failed, or took longer.
        """
        options = onnxruntime.RunOptions()
        options.log_severity_level = 4
        watch = threading.Timer(seconds, setattr, (options, "terminate", True))
        watch.start()
        try:
            self._run(self._binding, options)
        except Exception as error:  # ONNX Runtime's exceptions share no base but this one
            if options.terminate:
                raise PolicyError(
                    f"{self.path}: one inference takes more than {seconds:g} s, expected a few ms; does it "
                    "loop without an end?"
                ) from error
            raise PolicyError(f"{self.path}: inference failed: {error}; export it again") from error
        finally:
            watch.cancel()
            watch.join()

    def _value(self, array: Array) -> object:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self._keep += [array, value]
        return value


def _open(path: Path, optimise: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what is wrong with a file is said by the exception
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    try:
        with limited_memory():
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no base but this one
        reason = str(error).splitlines()[0]
        raise PolicyError(
            f"{path}: ONNX Runtime {onnxruntime.__version__} can't load it: {reason}; export it again, or "
            "install a newer onnxruntime"
        ) from error


def _port(path: Path, node: onnxruntime.NodeArg) -> Port:
    dtype = DTYPES.get(node.type)
    if dtype is None:
        raise PolicyError(
            f"{path}: '{node.name}' is a {node.type}, expected one of {', '.join(sorted(DTYPES))}"
        )
    free = [axis for axis, size in enumerate(node.shape) if not isinstance(size, int)]
    if any(axis != 0 for axis in free):
        raise PolicyError(
            f"{path}: '{node.name}' has shape {node.shape}; only the first axis (the batch) may be free"
        )
    port = Port(tuple(size if isinstance(size, int) else 1 for size in node.shape), dtype)
    if port.size > LARGEST_PORT:
        raise PolicyError(
            f"{path}: '{node.name}' has shape {node.shape}; expected at most {LARGEST_PORT} numbers"
        )
    return port

"""Writes a delta network as ONNX, by hand: a dozen fields of protocol buffers, and no library for them.

The layout is that of onnx.proto3 (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3), whose field
numbers stand below.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from onboard.analysis.fit.features import Features, Float64Array
from onboard.configs.errors import PolicyError

INPUT, OUTPUT = "obs", "delta"
IR_VERSION, OPSET = 8, 13
_FLOAT = 1


def write_network(path: Path, features: Features, output: Float64Array, about: Mapping[str, str]) -> Path:
    """Write `delta = [x, tanh(x W + c)] V` with the inputs' scale in front.

    Args:
        path: of the file.
        features: input and hidden layer.
        output: (features, joints) output layer, rad.
        about: metadata, text by name.

    Raises:
        PolicyError: the file can't be written.
    """
    inputs, joints = len(features.scale), output.shape[1]
    numbers = {
        "scale": features.scale[None],
        "hidden_weight": features.weights,
        "hidden_shift": features.shift[None],
        "output_weight": output,
    }
    nodes = (
        ("Mul", (INPUT, "scale"), "x"),
        ("MatMul", ("x", "hidden_weight"), "looked"),
        ("Add", ("looked", "hidden_shift"), "shifted"),
        ("Tanh", ("shifted",), "hidden"),
        ("Concat", ("x", "hidden"), "y"),
        ("MatMul", ("y", "output_weight"), OUTPUT),
    )
    graph = b"".join(
        (
            *(_message(1, _node(kind, sources, result)) for kind, sources, result in nodes),
            _text(2, "delta"),
            *(_message(5, _tensor(name, values)) for name, values in numbers.items()),
            _message(11, _port(INPUT, (1, inputs))),
            _message(12, _port(OUTPUT, (1, joints))),
        )
    )
    entries = (_message(14, _text(1, name) + _text(2, value)) for name, value in about.items())
    opset = _message(8, _text(1, "") + _number(2, OPSET))
    model = _number(1, IR_VERSION) + _text(2, "onboard") + _message(7, graph) + opset + b"".join(entries)
    try:
        path.write_bytes(model)
    except OSError as error:
        raise PolicyError(f"{path}: can't be written ({error.strerror}); name another place") from error
    return path


def _node(kind: str, sources: Sequence[str], result: str) -> bytes:
    """NodeProto: input 1, output 2, op_type 4, attribute 5; Concat needs its axis."""
    axis = _message(5, _text(1, "axis") + _number(3, 1) + _number(20, 2)) if kind == "Concat" else b""
    return b"".join(_text(1, source) for source in sources) + _text(2, result) + _text(4, kind) + axis


def _tensor(name: str, values: Float64Array) -> bytes:
    """TensorProto: dims 1, data_type 2, name 8, raw_data 9 (little-endian)."""
    dims = b"".join(_number(1, size) for size in values.shape)
    return dims + _number(2, _FLOAT) + _text(8, name) + _message(9, values.astype("<f4").tobytes())


def _port(name: str, shape: Sequence[int]) -> bytes:
    """ValueInfoProto: name 1, type 2 > tensor_type 1 > elem_type 1, shape 2 > dim 1 > dim_value 1."""
    dims = b"".join(_message(1, _number(1, size)) for size in shape)
    return _text(1, name) + _message(2, _message(1, _number(1, _FLOAT) + _message(2, dims)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])

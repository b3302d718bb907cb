"""What a pickle may hold, and that nothing in it is ever executed."""

import contextlib
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.configs.errors import PolicyError
from onboard.policies.safe_pickle import read_pickle

PLAIN: dict[str, Any] = {
    "numbers": [1, 2.5, True, None, 10**30],
    "text": ("a", b"bytes", "ä"),
    "arrays": {
        "c": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "empty": np.zeros((0, 4), np.float32),
        "big endian": np.arange(3, dtype=">f4"),
        "names": np.array(["left", "right"]),
        "flags": np.array([True, False]),
        "single": np.array(3.5),
    },
    "scalar": np.float64(0.25),
    "ordered": OrderedDict(fps=30),
}


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, np.ndarray):
        native = expected.dtype.newbyteorder("=")
        return bool(found.dtype.newbyteorder("=") == native and np.array_equal(found, expected))
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[key], expected[key]) for key in expected)
    return bool(found == expected)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_of_every_protocol_comes_back(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(PLAIN, protocol))
    assert same(read_pickle(tmp_path / "m.pkl"), PLAIN)


def test_joblibs_arrays_come_back(tmp_path: Path) -> None:
    joblib.dump(PLAIN, tmp_path / "m.pkl")
    assert same(read_pickle(tmp_path / "m.pkl"), PLAIN)


class Command:
    """What pickle calls when it rebuilds it."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.reduced = function, arguments

    def __reduce__(self) -> Any:
        return self.reduced


def test_a_pickle_that_would_execute_code_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    functions: tuple[Callable[..., Any], ...] = (os.mkdir, os.system, eval, getattr)
    for number, function in enumerate(functions):
        path = tmp_path / f"{number}.pkl"
        argument = str(marker) if function is os.mkdir else f"mkdir {marker}"
        path.write_bytes(pickle.dumps({"walk": Command(function, argument)}))
        with pytest.raises(PolicyError, match=r"refused: it names .*could run code; convert the motion"):
            read_pickle(path)
    assert not marker.exists()


def test_code_inside_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    array = np.empty(1, object)
    array[0] = Command(os.mkdir, str(marker))
    for write in (joblib.dump, lambda data, path: Path(path).write_bytes(pickle.dumps(data))):
        write({"walk": array}, tmp_path / "m.pkl")
        with pytest.raises(PolicyError, match="refused"):
            read_pickle(tmp_path / "m.pkl")
    assert not marker.exists()


@pytest.mark.parametrize(
    "stream",
    [
        b"cnumpy\nndarray\n(dX\x01\x00\x00\x00aI1\nsb.",  # sets an attribute of an admitted name
        b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n(dX\x04\x00\x00\x00readI1\nsb.",
        b"cbuiltins\nexec\n(X\x04\x00\x00\x00passtR.",
        b"(cos\nsystem\nX\x04\x00\x00\x00trueo.",
        b"(X\x04\x00\x00\x00trueios\nsystem\n.",
        b"P12\n.",
        b"\x82\x01.",
    ],
)
def test_streams_made_by_hand_are_refused(tmp_path: Path, stream: bytes) -> None:
    (tmp_path / "m.pkl").write_bytes(stream)
    with pytest.raises(PolicyError):
        read_pickle(tmp_path / "m.pkl")


def test_arrays_of_records_and_damaged_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.pkl"
    joblib.dump({"a": np.zeros(2, [("x", "f4")])}, path)
    with pytest.raises(PolicyError, match="refused"):
        read_pickle(path)
    joblib.dump({"a": np.zeros(100)}, path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(PolicyError, match="can't be read as a pickled motion"):
        read_pickle(path)


def test_what_is_compressed_with_another_package_or_not_to_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.pkl"
    joblib.dump(PLAIN, path, compress=("lz4", 3))
    with pytest.raises(PolicyError, match="compressed with lz4"):
        read_pickle(path)
    joblib.dump(PLAIN, path, compress=3)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PolicyError, match="damaged or larger than"):
        read_pickle(path)
    with pytest.raises(PolicyError, match="can't be read"):
        read_pickle(tmp_path / "absent.pkl")


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_and_never_more(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes changed anywhere: plain data or a refusal, no other end."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.pkl"
    content = bytearray(pickle.dumps({"walk": {"dof": np.arange(6.0), "fps": 30}}))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(PolicyError):
        read_pickle(path)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ((3, "<", None, None, None, -1, -1, 0), None),
        ((3, ">", None, None, None, 1 << 40, 1 << 40, 255), None),
        ((3, "!", None, None, None, -1, -1, 0), "byte order '!'"),
        ((3, ["<"], None, None, None, -1, -1, 0), "can't be read"),
        ((3, "<", ("f8", (3,)), None, None, -1, -1, 0), "an array of records"),
        ((3,), "can't be read"),
        (7, "can't be read"),
    ],
)
def test_of_the_state_of_a_type_its_byte_order_alone_is_taken(
    tmp_path: Path, state: object, expected: str | None
) -> None:
    made = b"cnumpy\ndtype\nX\x02\x00\x00\x00f8\x89\x88\x87R"
    (tmp_path / "m.pkl").write_bytes(b"\x80\x02" + made + pickle.dumps(state, 2)[2:-1] + b"b.")
    if expected is not None:
        with pytest.raises(PolicyError, match=expected):
            read_pickle(tmp_path / "m.pkl")
        return
    assert read_pickle(tmp_path / "m.pkl").itemsize == 8

"""Reference motions: csv, npz and pickles; logs of other tools for the fit, and its statistics."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from hypothesis import strategies as st

from onboard.analysis.fit.reading import load_gains, read_trajectories
from onboard.logging.preprocess.normalize import load_statistics
from onboard.policies.motion_sources import load_frames
from tests.fuzz.arrays import archives
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.kinds.policies import motion_contract
from tests.fuzz.mutate import TEXTS, Strategy, blobs, folder, trees, yaml_texts
from tests.policies.models import JOINTS, ROBOT
from tests.policies.test_motion_files import NPZ, PKL, clip, waving

CSV_MOTION = {"source": "file", "file": "m.csv", "rate_hz": 30.0, "quat_order": "xyzw", "anchor": "torso"}
RATES = (b"nan", b"inf", b"1e308", b"-0", b"", b",", b"\n", b"1_0", b"0x1", b"#", b'"', b" " * 500, b"\r")
OPCODES = (
    b"cos\nsystem\n(X\x0d\x00\x00\x00touch PLANTEDtR.",
    b"cbuiltins\nexec\n(X\x04\x00\x00\x00passtR.",
    b"cnumpy\nndarray\n",
    b"cnumpy.core.multiarray\n_reconstruct\n",
    b"cnumpy\nfromfile\n(X\x0b\x00\x00\x00/etc/passwdtR.",
    b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81",
    *(b"N" + b"2\x86" * 60, b"]" + b"2\x85" * 60, b"(" * 50, b"\x80\x05\x95" + b"\xff" * 8),
    *(
        b"\x8a\xff" + b"\xff" * 255,
        b"B\xff\xff\xff\x7f",
        b"\x8d" + b"\xff" * 8,
        b"r\xff\xff\xff\xff",
        b"0" * 9,
    ),
    *(b"\x82\x01", b"P12\n", b"Q", b"\x97", b"b", b"u", b"s", b"e", b"\x93", b"R", b"i__main__\nX\n", b"o"),
)
"""Calls of things that run code, and opcodes that grow, nest, or take what is not there."""


def _motions(name: str, spoilt: Callable[[], st.SearchStrategy[bytes]]) -> Callable[[], Strategy]:
    return lambda: spoilt().map(lambda content: {name: content})


def _reader(name: str, **motion: Any) -> Callable[[Path], None]:
    contract = motion_contract(**motion)

    def read(place: Path) -> None:
        frames = load_frames(contract, {}, place / name, ROBOT)
        assert frames is not None
        assert np.isfinite(frames.joint_pos).all()
        assert len(frames) == len(frames.anchor_quat)

    return read


def _csv() -> st.SearchStrategy[bytes]:
    rows = np.zeros((20, 36))
    rows[:, 6], rows[:, 2] = 1.0, 0.8
    text = io.BytesIO()
    np.savetxt(text, rows, delimiter=",", fmt="%.3f")
    return blobs(text.getvalue(), pieces=(*RATES, *TEXTS))


def _npz() -> st.SearchStrategy[bytes]:
    data = waving(11)
    own = {
        "framerate": np.array(25.0),
        "joint_names": np.array(JOINTS),
        "joint_pos": data["joint_pos"],
        "base_pos_w": data["body_pos_w"][:, 0],
        "base_quat_w": data["body_quat_w"][:, 0],
    }
    return archives(data, own)


def _pickles() -> st.SearchStrategy[bytes]:
    motion = {"walk": clip(11)}
    packed = io.BytesIO()
    joblib.dump(motion, packed, compress=3)
    plain = io.BytesIO()
    joblib.dump(motion, plain)
    whole = [pickle.dumps(motion, 2), pickle.dumps(motion), plain.getvalue(), packed.getvalue()]
    spoilt = trees(motion).map(lambda data: pickle.dumps(data, 4))
    return st.one_of(spoilt, blobs(*whole, pieces=OPCODES), blobs(*whole[:3], pieces=OPCODES))


def _log(rows: int = 80) -> dict[str, Any]:
    time = np.arange(rows) * 0.02
    wave = 0.1 * np.sin(6.0 * time)[:, None] * np.ones((1, 29))
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1))
    return {
        "t": time,
        "q": wave,
        "dq": np.gradient(wave, 0.02, axis=0),
        "target": wave,
        "quat": quat,
        "gyro": np.zeros((rows, 3)),
        "kp": np.full(29, 100.0),
        "kd": np.full((rows, 29), 2.0),
        "joint_names": np.array(JOINTS),
    }


def _fits() -> Strategy:
    gains = {"kp": {"*": 100.0, "*_ankle_*": 40.0}, "kd": {"*": 2.0}}
    logs = archives(_log(), _log(60))
    whole = {"gains.yaml": b"{kp: {'*': 100.0}, kd: {'*': 2.0}}"}
    alone = folder(whole, log__npz=logs)
    return st.one_of(alone, alone, folder({}, log__npz=logs, gains__yaml=yaml_texts(gains)))


def _read_log(place: Path) -> None:
    gains = load_gains(place / "gains.yaml", ROBOT)
    for given in (None, gains):
        for found in read_trajectories(place / "log.npz", ROBOT, given):
            assert np.isfinite(found.q).all()
            assert np.isfinite(found.kp).all()


def _statistics() -> Strategy:
    saved = {"count": np.array(10), "q.mean": np.zeros(29), "q.std": np.ones(29)}
    return folder({}, statistics__npz=archives(saved))


def _read_statistics(place: Path) -> None:
    load_statistics(place / "statistics.npz").normalize({"q": np.zeros((2, 29), np.float32)})


KINDS = [
    Kind("motion-csv", "a motion as csv", _motions("m.csv", _csv), _reader("m.csv", **CSV_MOTION), "m.csv"),
    Kind("motion-npz", "a motion as npz", _motions("m.npz", _npz), _reader("m.npz", **NPZ), "m.npz"),
    Kind(
        "motion-pkl",
        "a pickled motion",
        _motions("m.pkl", _pickles),
        _reader("m.pkl", **(PKL | {"joints": [name for name in JOINTS if "wrist" not in name]})),
        "m.pkl",
    ),
    Kind("fit-npz", "a log of another tool and its gains", _fits, _read_log, "/case"),
    Kind("statistics", "statistics of a training set", _statistics, _read_statistics, "statistics.npz"),
]

"""Every verb given garbage: one line, an exit code that is not 0, no traceback, nothing started."""

import os
from pathlib import Path

import pytest

from onboard.cli.main import VERBS, main

GARBAGE = {
    "random": bytes(range(256)) * 8,
    "empty": b"",
    "text": b"steps: [{press: [[\n\x1b[2J",
    "alias": b"&a [*a, *a]",
    "pickle": b"cos\nsystem\n(X\x04\x00\x00\x00truetR.",
    "hdf5": b"ONBDROL1" + bytes(600),
    "journal": b"ONBDJNL1" + b"\xff" * 600,
    "zip": b"PK\x03\x04" + bytes(100),
}
"""Contents of files of any kind."""

VERBS_WITH_FILES = [
    *(["policy", verb, "{onnx}"] for verb in ("show", "check")),
    *(["policy", verb, "{folder}"] for verb in ("show", "check")),
    ["policy", "export", "{onnx}", "--out", "{out}"],
    ["try", "{onnx}"],
    ["try", "{folder}"],
    ["run", "{onnx}"],
    ["run", "{folder}", "--script", "{yaml}"],
    ["check", "{onnx}"],
    ["sim", "--config", "{yaml}"],
    ["sim", "--domain", "1", "--script", "{text}"],
    ["bench", "{yaml}"],
    ["fit", "{npz}", "--out", "{out}"],
    ["fit", "{h5}", "--out", "{out}"],
    *(["log", verb, "{h5}"] for verb in ("info", "plot", "replay", "diagnose", "verify", "recover")),
    *(["log", verb, "{journal}"] for verb in ("info", "recover")),
    ["log", "export", "{h5}", "--format", "npz", "--out", "{out}"],
    ["log", "recover", "{journal}", "--out", "{out}"],
]
NAMES = {
    "onnx": "m.onnx",
    "yaml": "c.yaml",
    "text": "s.txt",
    "npz": "l.npz",
    "h5": "r.h5",
    "journal": "r.journal",
}

ODD_WORDS = [
    *(
        "",
        " ",
        "-",
        "--",
        "---",
        "--help=x",
        "--json",
        "-1",
        "nan",
        "\x1b[2J",
        "a\0b",
        "a" * 5000,
        "../..",
        "/dev/zero",
    ),
    *(
        "%s",
        "{}",
        "--set",
        "--set=",
        "--set=a",
        "--set=a.b=[",
        "--domain=999999999999",
        "--domain=x",
        "ä",
        "\udcff",
    ),
]


def complaint(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Run the command; it must refuse without a traceback."""
    try:
        code: object = main(arguments)
    except SystemExit as stop:  # how the parser of arguments ends
        code = stop.code
    said = capfd.readouterr()
    assert code not in (0, None), arguments
    assert "Traceback" not in said.err + said.out, arguments
    assert said.err or said.out, arguments
    assert "\x1b[2J" not in said.err or "\x1b[2J" in arguments, arguments


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_file_of_garbage_is_refused_by_every_verb(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    folder = tmp_path / "bundle"
    (folder / "params").mkdir(parents=True)
    for path in (*(tmp_path / name for name in NAMES.values()), folder / "contract.yaml", folder / "m.onnx"):
        path.write_bytes(GARBAGE[kind])
    places = {key: str(tmp_path / name) for key, name in NAMES.items()}
    for words in VERBS_WITH_FILES:
        if kind in ("empty", "alias") and "{text}" in words:
            continue  # a script without lines is one
        out = {"out": str(tmp_path / "out"), "folder": str(folder)}
        complaint(capfd, [word.format(**places, **out) for word in words])
    assert not [path for path in (tmp_path / "out").glob("*") if path.suffix == ".h5"]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("demo", "status")])
def test_odd_words_are_refused_by_every_verb(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in ODD_WORDS:
        given = (
            [verb, word]
            if verb not in ("policy", "log")
            else [verb, "info" if verb == "log" else "show", word]
        )
        complaint(capfd, given if verb != "sim" else [*given, "--nothing-of-that-name"])
    assert not os.listdir(tmp_path)

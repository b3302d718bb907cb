"""Files read within bounds: what is damaged, hostile or endless ends in one of two errors."""

import io
import os
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest

from onboard.configs import untrusted
from onboard.configs.errors import LONGEST_MESSAGE, ConfigError, OnboardError
from onboard.configs.loader import parse_yaml, read_yaml
from onboard.configs.untrusted import limited_memory, parse_npy, read_npy, read_npz, read_whole


def test_plain_arrays_come_back(tmp_path: Path) -> None:
    arrays = {
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "none": np.zeros((0, 3)),
        "one": np.array(2.5),
        "text": np.array(["left", "right"]),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]  # a name might be an option
    found = read_npz(tmp_path / "a.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(found[name], array)
        assert found[name].flags.writeable
    np.save(tmp_path / "a.npy", arrays["f"])
    assert np.array_equal(read_npy(tmp_path / "a.npy"), arrays["f"])


@pytest.mark.parametrize("shape", [(2, 4), (99_999_999_999, 9), (-2, -3), (2, 2)])
def test_an_array_that_claims_another_size_than_it_has_is_refused_before_it_takes_memory(
    shape: tuple[int, ...],
) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with pytest.raises(ValueError, match=r"takes -?\d+ bytes, found 48"):
        parse_npy(file.getvalue() + bytes(48))


def test_objects_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(ValueError, match="Python objects"):
        read_npz(path)
    np.savez(path, a=np.zeros(500))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="zip"):
        read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.npy", b"no array")
    with pytest.raises(ValueError, match="magic"):
        read_npz(path)
    assert not (tmp_path.parent.parent / "evil.npy").exists()


def test_an_archive_that_unpacks_to_more_than_it_may_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "LARGEST_BYTES", 100_000)
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(100_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 2000
    with pytest.raises(ValueError, match="unpacks to more than 100000 bytes"):
        read_npz(tmp_path / "bomb.npz")


def test_only_regular_files_of_some_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "pipe", "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path, "Is a directory"),
        (Path("a\0b"), "can't be a file's"),
        (tmp_path / ("a" * 5000), "too long"),
    ):
        with pytest.raises(OSError, match=message):
            read_whole(path)
    (tmp_path / "large").write_bytes(bytes(11))
    with pytest.raises(OSError, match="11 bytes, expected at most 10"):
        read_whole(tmp_path / "large", 10)
    assert read_whole(tmp_path / "large", 11) == bytes(11)


def test_memory_is_limited_for_a_while_only() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with limited_memory(64 << 20), pytest.raises(MemoryError):
        np.zeros(1 << 30, np.uint8)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert np.zeros(1 << 27, np.uint8).size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!!timestamp x", "not valid YAML"),
        ("!!bool x", "not valid YAML"),
        ("!!int ''", "not valid YAML"),
        ("!!map [a]", "not valid YAML"),
        ("!!set [a]", "not valid YAML"),
        ("&a [*a]", "aliases unfolded"),
        ("&a {b: *a}", "aliases unfolded"),
        ("[" * 100 + "]" * 100, "60 levels"),
        (
            "[&a [x, x], " + ", ".join(f"&{chr(c + 1)} [*{chr(c)}, *{chr(c)}]" for c in range(97, 121)) + "]",
            "more than 100000 values",
        ),
    ],
)
def test_yaml_that_is_odd_or_unfolds_without_end_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_yaml(text, "here")


def test_a_large_yaml_is_not_even_parsed(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match=r"large\.yaml: can't be read \(1048577 bytes, expected at most"):
        read_yaml(tmp_path / "large.yaml")


def test_a_message_is_one_printable_line_whatever_a_file_put_into_it() -> None:
    assert str(OnboardError("no key '\x1b[2J\r\nred\u202e'")) == r"no key '\x1b[2J red\u202e'"
    assert len(str(OnboardError("a" * 100_000))) <= LONGEST_MESSAGE

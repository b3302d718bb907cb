"""The guard itself: what it must notice is done once, in a worker of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from onboard.configs.errors import PolicyError
from tests.fuzz import runner
from tests.fuzz.guard import judge_refusal
from tests.fuzz.kinds.kind import Kind

ELSEWHERE = str(Path(tempfile.gettempdir(), "elsewhere"))
DEEDS: dict[str, tuple[str, str]] = {
    "runs a program": ("import os; os.system('true')", "forbidden: os.system"),
    "starts a process": ("import subprocess; subprocess.run(['true'])", "forbidden: subprocess.Popen"),
    "reads elsewhere": ("open('/etc/passwd').read()", "forbidden: opens '/etc/passwd'"),
    "writes elsewhere": (f"open({ELSEWHERE!r}, 'w')", f"forbidden: opens {ELSEWHERE!r}"),
    "removes elsewhere": (f"import os; os.remove({ELSEWHERE!r})", "forbidden: os.remove"),
    "never ends": ("while True: pass", "TooLongError"),
    "takes all memory": ("bytearray(1 << 33)", "MemoryError"),
    "ends oddly": ("{}['a']", "KeyError: 'a'"),
    "does nothing": ("pass", "None"),
}

PROGRAM = """
import json, sys
from pathlib import Path
from tests.fuzz import guard
guard.CPU_S = 0.3
watch = guard.Guard(Path(sys.argv[1]))
watch.limit_memory()
deeds = [compile(code, "deed", "exec") for code in json.loads(sys.argv[2])]
print(json.dumps([watch.run(lambda _: exec(code, {}), None)[1] for code in deeds]))
"""


def test_the_guard_notices_what_no_input_may_do(tmp_path: Path) -> None:
    codes = json.dumps([code for code, _ in DEEDS.values()])
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), codes]
    run = subprocess.run(command, cwd=runner.ROOT, capture_output=True, text=True, check=True)
    for (deed, (_, expected)), found in zip(DEEDS.items(), json.loads(run.stdout), strict=True):
        assert str(found).startswith(expected), deed


@pytest.mark.parametrize(
    ("message", "where", "wrong"),
    [
        ("m.csv: 3 columns, expected 36", "m.csv", None),
        ("3 columns, expected 36", "m.csv", "does not name m.csv"),
        ("no", None, "has 2 characters"),
    ],
)
def test_a_refusal_is_judged_by_its_message(message: str, where: str | None, wrong: str | None) -> None:
    found = judge_refusal(PolicyError(message), where)
    assert found is None if wrong is None else wrong in str(found)


def _worker(body: str) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a program in place of the worker."""
    start = subprocess.Popen

    def popen(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        return start([sys.executable, "-c", body, *command[3:]], **options)  # type: ignore[call-overload, no-any-return]

    return popen


TALLY = """
import json, os, struct, sys, time
folder, seed, wanted = sys.argv[1:]
def tell(name, count): open(f"{folder}/{name}.tally", "wb").write(struct.pack("<QQQ", count, count, 0))
os.makedirs(folder + "/case", exist_ok=True); open(folder + "/case/input", "w").write("x")
left = json.loads(wanted)
"""


def test_a_worker_that_dies_is_a_failure_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = TALLY + (
        "for name, count in left.items():\n"
        "    tell(name, 3 if name == 'b' and seed == '1' else count)\n"
        "    if name == 'b' and seed == '1': os.abort()\n"
    )
    monkeypatch.setattr(subprocess, "Popen", _worker(body))
    rows = {row.kind: row for row in runner.fuzz({"a": 5, "b": 10, "c": 4}, 1, tmp_path)}
    assert {name: row.cases for name, row in rows.items()} == {"a": 5, "b": 10, "c": 4}
    (failure,) = rows["b"].failures
    assert (failure.case, failure.wrong.split(":")[0]) == (3, "ended by signal 6")
    assert (Path(failure.files) / "input").read_text() == "x"
    assert not rows["a"].failures + rows["c"].failures


def test_a_worker_that_stands_still_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = TALLY + "tell('a', 2 if seed == '1' else left['a'])\nif seed == '1': time.sleep(100)\n"
    monkeypatch.setattr(subprocess, "Popen", _worker(body))
    monkeypatch.setattr(runner, "STUCK_S", 1.0)
    (row,) = runner.fuzz({"a": 5}, 1, tmp_path)
    assert (row.cases, [failure.wrong for failure in row.failures]) == (5, ["no end after 1 s"])


def test_a_beginning_of_a_name_stands_for_all_that_begin_with_it() -> None:
    assert len(runner.known(["config"])) > 5
    assert runner.known(["onnx"]) == ["onnx"]
    with pytest.raises(ValueError, match="no kind 'x'; there are: "):
        runner.known(["x"])


def test_a_result_is_plain_data() -> None:
    row = runner.Result("a", 1, failures=[runner.Failure("a", 1, 1, "wrong", "folder")])
    assert json.loads(json.dumps(row.as_json()))["failures"][0]["seed"] == 1


def test_a_kind_is_what_a_module_says() -> None:
    kind = Kind("x", "nothing", lambda: st.just({}), os.fspath)
    assert kind.where is None

import runpy
from pathlib import Path

import pytest

from onboard.configs.faults import Fault
from onboard.safety import fault_table as module
from onboard.safety.fault_table import BEGIN, END, fault_table


def test_a_row_tells_what_happens_how_fast_and_who_injects_it() -> None:
    stop = Fault("the robot is hit", "the gate", "damp", "FALL", "lock-step", 40.0, 3, "push 100", "push 50")
    warm = Fault("a motor is warm", "the gate", "none", "", "real DDS")
    rows = fault_table({"hit": stop, "warm": warm}).splitlines()[2:]
    assert rows == [
        "| hit | the robot is hit | the gate | damp | 40 ms | FALL | 3 | lock-step, `push 100` | `push 50` |",
        "| warm | a motor is warm | the gate | none |  |  | goes on | real DDS |  |",
    ]


def test_bringing_a_file_up_to_date_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nstale\n{END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["fault_table", str(page)])
    runpy.run_path(module.__file__, run_name="__main__")
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n\n| name |")
    assert text.endswith(f"|\n\n{END}\nafter\n")
    assert "stale\n" not in text

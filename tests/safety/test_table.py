import runpy
from pathlib import Path

import pytest

from onboard.configs.events import Event
from onboard.configs.safety import load_safety
from onboard.safety import table
from onboard.safety.table import BEGIN, END, event_table, with_table
from tests.safety.support import CONFIG

DOC = Path(__file__).parents[2] / "docs" / "safety.md"


def test_the_documented_table_is_the_one_the_gate_obeys() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert with_table(text, event_table(CONFIG)) == text, "run: python -m onboard.safety.table docs/safety.md"


def test_every_event_has_its_row_with_bit_condition_debounce_and_tier() -> None:
    rows = event_table(CONFIG).splitlines()
    assert len(rows) == 2 + len(Event)
    assert "| 0 | ROLL | \\|roll\\| > 0.8 rad | 2 ticks | damp | yes |" in rows
    assert "| 10 | TORQUE_OVER | \\|tau_est\\|, share of the limit > 1 | 2 s | damp | yes |" in rows
    assert "| 22 | CRC_RATE | share of bad checksums > 0.05 within 1 s | 1 tick | damp |  |" in rows
    assert "| 36 | DISK_LOW | free space < 500 MB | 1 tick | warn |  |" in rows
    assert "| 40 | OPERATOR_STOP | the stop button | 1 tick | settle, ends by itself |  |" in rows


def test_another_table_gives_another_text() -> None:
    other = event_table(load_safety("g1", ["events.ROLL.limit=1.5", "events.ROLL.ticks=4"]))
    assert "| 0 | ROLL | \\|roll\\| > 1.5 rad | 4 ticks | damp | yes |" in other


def test_bringing_a_file_up_to_date_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nstale\n{END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["table", str(page)])
    runpy.run_path(table.__file__, run_name="__main__")
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n\n| bit |")
    assert text.endswith(f"|\n\n{END}\nafter\n")
    assert "stale\n" not in text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END} {BEGIN}"])
def test_a_page_without_the_marks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected the lines"):
        with_table(text, "table")

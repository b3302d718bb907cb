"""The page on rollouts: its tables are the layout's, its examples run, its list of formats is complete."""

import re
from pathlib import Path

import h5py
import pytest

from onboard.logging.convert import convert
from onboard.logging.export.formats import ABOUT
from onboard.logging.layout import POLICY_FIELDS, ROW
from onboard.logging.rollout import Rollout
from onboard.logging.table import GROUPS, dataset_table, with_tables
from tests.logging.synthetic import journal, rows

PAGE = Path(__file__).parents[2] / "docs" / "rollouts.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    return convert(journal(folder, rows())).rename(folder / "walk.h5")


def test_tables_of_the_page_are_those_of_the_layout() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run: python -m onboard.logging.table docs/rollouts.md"


def test_groups_name_what_a_file_holds(walk: Path) -> None:
    with h5py.File(walk) as file:
        assert {field.name for field in GROUPS["rollout"]} == set(file["rollout"])
        assert {field.name for field in GROUPS["policies"]} | {"extras"} == set(file["policies/0"])


def test_a_table_gives_shape_type_and_unit() -> None:
    table = dataset_table((*ROW, *POLICY_FIELDS[:-1]))
    assert "| `q` | 29 | float32 | rad | joint positions |" in table
    assert "| `motor_temperature` | 29, 2 | int16 | °C |" in table
    assert "| `mode` | 1 | uint8 |" in table
    assert "| `action_policy` | A | float32 | raw |" in table
    with pytest.raises(ValueError, match="expected the lines"):
        with_tables("no marks")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_run(number: int, walk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(walk.parent)
    exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number}", "exec"), {})


def test_every_format_and_attribute_is_explained(walk: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ABOUT:
        assert f"**{name}.**" in text
        assert f"| `{name}` |" in text
    with Rollout(walk) as rollout:
        for attribute in rollout.attributes:
            assert f"`{attribute}`" in text, attribute
    assert len(EXAMPLES) >= 3

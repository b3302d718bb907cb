from pathlib import Path

import mujoco
import pytest

from onboard.configs.bodies import BodyTable, load_bodies
from onboard.configs.errors import ConfigError
from onboard.sim.body_table import ROBOT, TABLE, body_table, write_table
from onboard.sim.model import ROBOT_XML


def numbers(table: BodyTable) -> list[float]:
    """All of a table's numbers, link by link."""
    links = [
        (*k.position_m, *k.quat_wxyz, *k.axis, k.mass_kg, *k.com_m, *k.inertia_kg_m2) for k in table.links
    ]
    return [x for row in (*links, *table.sole_m) for x in row] + [table.sole_radius_m]


def test_the_shipped_table_is_what_the_model_gives() -> None:
    shipped, fresh = load_bodies(ROBOT), body_table(mujoco.MjModel.from_xml_path(str(ROBOT_XML)))
    assert [(k.name, k.parent) for k in shipped.links] == [(k.name, k.parent) for k in fresh.links]
    assert numbers(shipped) == pytest.approx(numbers(fresh), abs=1e-12), (
        "the MJCF has changed: run python -m onboard.sim.body_table"
    )


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    write_table(tmp_path / "bodies.yaml")
    assert load_bodies(str(tmp_path / "bodies.yaml")) == body_table(
        mujoco.MjModel.from_xml_path(str(ROBOT_XML))
    )


def test_a_tree_out_of_order_is_refused(tmp_path: Path) -> None:
    wrong = TABLE.read_text().replace("parent: 1\n", "parent: 7\n", 1)
    (tmp_path / "bodies.yaml").write_text(wrong)
    with pytest.raises(ConfigError, match="its parent must stand before it, found number 7"):
        load_bodies(str(tmp_path / "bodies.yaml"))


def test_a_model_with_different_soles_is_refused() -> None:
    model = mujoco.MjModel.from_xml_path(str(ROBOT_XML))
    foot = model.body("left_ankle_roll_link").id
    sphere = next(g for g in range(model.ngeom) if model.geom_bodyid[g] == foot and model.geom_contype[g])
    model.geom_pos[sphere, 0] += 0.01
    with pytest.raises(ValueError, match="the soles of the two feet differ"):
        body_table(model)

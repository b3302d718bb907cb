"""What is flown is what was checked: control compares its reading of a run's files with the parent's."""

from pathlib import Path

import pytest

from onboard.cli.run_options import run_config
from onboard.configs.errors import SafetyRefusalError
from onboard.configs.loader import shipped
from onboard.runtime.assembly import Plan, make_plan
from onboard.runtime.control import check_fingerprint
from tests.faults.lock_step import RESIDUAL
from tests.runtime.flight import POLICY, plan

CHANGES = {
    "robot": ("upper_rad: 2.8798", "upper_rad: 2.8799"),
    "safety": ("limit: 0.8", "limit: 0.81"),
    "residual": ("a: 0.02", "a: 0.03"),
}
"""File to what stands there and what it becomes."""


def files(folder: Path) -> dict[str, Path]:
    """Every file of a run that a user may keep beside it, as it is shipped."""
    plan()  # skips where the policy is not installed
    texts = {
        "robot": shipped("robots", "g1_29dof").read_text(encoding="utf-8"),
        "safety": shipped("safety", "g1").read_text(encoding="utf-8"),
        "residual": RESIDUAL,
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.yaml" for name in texts}


def read(paths: dict[str, Path]) -> Plan:
    named = {name: str(path) for name, path in paths.items()}
    return make_plan(run_config(policy=POLICY, gantry=True, arm="keep", **named))


def test_reading_the_same_files_twice_gives_the_same_fingerprint(tmp_path: Path) -> None:
    paths = files(tmp_path)
    check_fingerprint(read(paths), read(paths).fingerprint)


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changed_between_the_two_readings_is_refused(tmp_path: Path, name: str) -> None:
    paths = files(tmp_path)
    checked = read(paths).fingerprint
    old, new = CHANGES[name]
    text = paths[name].read_text(encoding="utf-8")
    assert old in text
    paths[name].write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SafetyRefusalError, match="was changed while the run was starting"):
        check_fingerprint(read(paths), checked)

"""What a diagnosis says of a nominal and of a weak robot, and of its parts."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from onboard.analysis.diagnose import diagnose, hangs
from onboard.analysis.lock_step_sources import TruthSource
from onboard.analysis.prediction import PHASES, contact_phase
from onboard.cli.main import main
from onboard.logging.rollout import Rollout
from tests.analysis.flown import write_flight
from tests.runtime.flight import Flight

TICKS = 100


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A walk of the nominal robot, contact and base velocity known."""
    flight = Flight(sources=lambda link: [TruthSource(link)]).walk(ticks=TICKS)
    return write_flight(flight, tmp_path_factory.mktemp("walk"))


def test_the_nominal_simulator_predicts_itself_best_in_stance(walk: Path) -> None:
    with Rollout(walk) as rollout:
        assert not hangs(rollout)
        found = diagnose(rollout, 0.5, 5.0, held=False)
    legs = {phase: float(np.sqrt(np.mean(e[:12] ** 2))) for phase, e in found.prediction.by_phase().items()}
    assert legs["stance"] < 0.001
    assert legs["touchdown"] > 3 * legs["stance"]
    assert np.isnan(found.prediction.one_step_rad[0]).all()
    assert np.abs(found.prediction.whole_rad[1]).max() < 0.01


def test_a_changed_record_shows_at_its_joint_and_row(walk: Path, tmp_path: Path) -> None:
    path = tmp_path / "changed.h5"
    path.write_bytes(walk.read_bytes())
    with Rollout(walk) as rollout:
        first = int(rollout.policies[0].rows[0])
    with h5py.File(path, "r+") as h5:
        h5["rollout/q"][first + 60, 20] += 0.3
    with Rollout(path, check=False) as rollout:
        error = np.abs(diagnose(rollout, 0.0, 5.0, held=False).prediction.one_step_rad)
    row, joint = np.unravel_index(np.nanargmax(error), error.shape)
    assert joint == 20
    assert row in (60, 61)


def test_phases_of_a_step() -> None:
    left = [1] * 10 + [0] * 10 + [1] * 10
    phase = contact_phase(np.array([left, [1] * 30]).T)
    names = [PHASES[index] for index in phase]
    assert names == ["stance"] * 8 + ["lift-off"] * 5 + ["stance"] * 5 + ["touchdown"] * 5 + ["stance"] * 7
    assert {PHASES[i] for i in contact_phase(np.zeros((5, 2)))} == {"flight"}
    assert {PHASES[i] for i in contact_phase(np.full((5, 2), -1))} == {"unknown"}


def test_spectra_find_a_tone(walk: Path, tmp_path: Path) -> None:
    path = tmp_path / "shaking.h5"
    path.write_bytes(walk.read_bytes())
    with h5py.File(path, "r+") as h5:
        action = h5["policies/0/action_policy"]
        action[:, 0] += 10 * np.sin(2 * np.pi * 10.0 * 0.02 * np.arange(len(action)))
    with Rollout(walk) as quiet, Rollout(path, check=False) as shaking:
        one, other = (diagnose(r, 0.0, 2.0, held=False).spectra["action"] for r in (quiet, shaking))
    assert one.share_above(5.0) < 0.2
    assert other.share_above(5.0) > 0.5
    assert other.hz[int(other.power[:, 0].argmax())] == pytest.approx(10.0, abs=0.6)


def test_the_verb(walk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "d.png", tmp_path / "d.json"
    argv = ["log", "diagnose", str(walk), "--seconds", "1", "--out", str(out), "--json", str(figures)]
    assert main(argv) == 0
    assert "the 6 worst joints" in capsys.readouterr().out
    found = json.loads(figures.read_text())
    assert found["held"] is False
    assert sum(found["phase_rows"].values()) > 40
    assert found["actions"]["before"] == found["actions"]["after"]
    assert found["period_ms"]["p50"] == pytest.approx(20.0)
    assert out.stat().st_size > 50_000

"""`onboard fit --by-contact`, from logs to a residual that the slot runs."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from onboard.analysis.fit import phases
from onboard.cli.main import main
from onboard.cli.recorded_trial import RecordedTrial
from onboard.cli.run_options import run_config
from onboard.configs.script import ScriptConfig, Step
from onboard.policies.residual.files import load_residual
from onboard.runtime.assembly import make_plan
from tests.analysis.fit.bench import FIRST, ROBOT, SECOND, record, write
from tests.analysis.fit.stands import ANKLE, SLOT, stands
from tests.policies.residual.support import Bench
from tests.runtime.flight import POLICY, plan

WEAK = 0.5
"""Of the torque of an ankle that is weak while its foot stands alone, and at no other time."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Bench runs and stands, each to fit and to hold out."""
    folder = tmp_path_factory.mktemp("contact")
    arrays = {
        name: found | {"contact": np.zeros((len(found["t"]), 2))}
        for name, found in (("bench", record(FIRST, ())), ("bench_held", record(SECOND, ())))
    }
    arrays |= {
        name: stands({"left": WEAK}, seed, moments=3) for name, seed in (("walk", 1), ("walk_held", 2))
    }
    return tuple(str(write(folder / f"{name}.npz", found)) for name, found in arrays.items())


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows without noise tell enough in small numbers; a walk of a real robot is another matter."""
    for name in ("LEAST_WINDOWS", "MOST_WINDOWS"):
        monkeypatch.setattr(phases, name, 5)


def test_an_ankle_that_is_weak_on_one_foot_alone_is_found_and_run_by_the_slot(
    logs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch)
    out, figures = tmp_path / "ankle.yaml", tmp_path / "fit.json"
    argv = ["fit", *logs, "--by-contact", "--joints", ANKLE, "--out", str(out), "--json", str(figures)]
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert "phase left: " in shown.err
    assert "by contact: iteration 1" in shown.err
    assert shown.out.splitlines()[-1].startswith("by contact: tracking error, simulator against robot")
    found = json.loads(figures.read_text())
    one, own = found["explanations"]["one"], found["explanations"]["by_contact"]
    assert own["left"]["coefficients"][ANKLE]["a"] == pytest.approx(WEAK - 1, abs=0.05)
    assert all(abs(own[phase]["coefficients"][ANKLE]["a"]) < 0.05 for phase in ("flight", "right", "both"))
    assert own["left"]["heldout_after_deg"] < 0.3 * one["left"]["heldout_after_deg"]
    assert own["left"]["heldout_after_deg"] < 0.2 * own["left"]["heldout_before_deg"]
    assert not any("no better than one" in warning for warning in found["warnings"])
    assert Path(found["files"]["plot"]).stat().st_size > 1000
    assert load_residual(found["files"]["one delta"], ROBOT, None).config.kind == "linear"

    config = load_residual(out, ROBOT, None).config
    assert (config.kind, config.mode, config.joints) == ("by_contact", "invert", (ANKLE,))
    assert config.provenance.heldout_after_deg == found["overall"]["by_contact"]["heldout_after_deg"]
    bench = Bench(tmp_path, msgspec.to_builtins(msgspec.structs.replace(config, fade_s=0.0)))
    for phase, contact in (("flight", (0, 0)), ("left", (1, 0)), ("right", (0, 1)), ("both", (1, 1))):
        bench.contact[:] = contact
        q, dq = bench.state.q[SLOT], bench.state.dq[SLOT]
        error = bench.policy.target(bench.base)[SLOT] - q
        a, b = (own[phase]["coefficients"][ANKLE][knob] for knob in ("a", "b"))
        expected = q + (error - b * dq) / (1 + a)
        assert bench.tick()[SLOT] == pytest.approx(expected, abs=1e-4)


def test_what_is_missing_is_one_line(logs: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", logs[0], logs[1], "--by-contact"]) == 2
    assert "no log of a robot on the ground" in capsys.readouterr().err
    assert main(["fit", *logs, "--by-contact", "--kind", "physical"]) == 2
    assert "contact changes no motor" in capsys.readouterr().err


@pytest.mark.slow
def test_from_a_simulated_robot_to_a_walk_with_its_residual(tmp_path: Path) -> None:
    plan()  # skips where the walker is not installed
    weak = "gap.gain={'*_ankle_*': 0.6}"
    bench_json = tmp_path / "bench.json"
    bench = ["bench", "ankles", "--sim", "--like", POLICY, "--sim-set", weak, "--out", str(tmp_path)]
    assert main([*bench, "--json", str(bench_json)]) == 0
    steps = (
        Step(press="start", until="ramp"),
        Step(until="hold"),
        Step(press="go", velocity=(0.0, 0.0, 0.0), until="policy", for_s=6.0),
        *(
            Step(velocity=velocity, for_s=5.0)
            for velocity in ((0.4, 0.0, 0.0), (0.2, 0.0, 0.4), (0.0, 0.2, 0.0))
        ),
        Step(velocity=(0.0, 0.0, 0.0), for_s=5.0),
    )
    walks = [
        RecordedTrial(
            make_plan(run_config(policy=POLICY, gantry=True)),
            ScriptConfig(steps),
            (weak,),
            tmp_path / name,
            seed=k,
        ).run(lambda seconds: None)["rollout"]
        for k, name in enumerate(("a", "b"), 1)
    ]
    out, figures = tmp_path / "ankles.yaml", tmp_path / "fit.json"
    logs = [json.loads(bench_json.read_text())["rollout"], *walks]
    assert main(["fit", *logs, "--by-contact", "--out", str(out), "--json", str(figures)]) == 0
    found = json.loads(figures.read_text())
    for phase in ("flight", "left", "right", "both"):
        errors = found["explanations"]["by_contact"][phase]
        # A weak ankle still carries a foot in the air to 0.2 deg: there is little to explain.
        assert errors["heldout_after_deg"] < max(0.4 * errors["heldout_before_deg"], 0.1)
    result = tmp_path / "try.json"
    argv = ["try", POLICY, "--residual", str(out), "--sim", weak, "--vx", "0.3", "--json", str(result)]
    assert main(argv) == 0
    trial = json.loads(result.read_text())
    assert not trial["residual_dropped"]


@pytest.mark.slow
def test_a_network_for_each_phase(
    logs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few(monkeypatch)
    out, figures = tmp_path / "ankle.yaml", tmp_path / "fit.json"
    argv = [
        "fit",
        *logs,
        "--by-contact",
        "--kind",
        "network",
        "--joints",
        ANKLE,
        "--hidden",
        "3",
        "--frames",
        "2",
    ]
    assert main([*argv, "--out", str(out), "--json", str(figures)]) == 0
    bundle = load_residual(out, ROBOT, None)
    assert sorted(bundle.models) == [f"ankle_{phase}.onnx" for phase in ("both", "flight", "left", "right")]
    found = json.loads(figures.read_text())["explanations"]
    assert found["network"]["left"]["heldout_after_deg"] < 0.3 * found["one"]["left"]["heldout_after_deg"]

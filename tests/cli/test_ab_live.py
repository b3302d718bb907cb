"""`onboard ab --live` and arms in blocks, flown: a simulated robot on DDS, the real processes, an operator.

The operator answers the prompts, puts the robot back before every episode, and loses patience in one test.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from onboard.cli import ab, log_replay
from onboard.cli.sim_process import SimProcess
from onboard.logging.rollout import Rollout
from onboard.runtime.free_domain import free_domain_id
from tests.runtime.flight import POLICY, plan

pytestmark = pytest.mark.slow
pytest.importorskip("mujoco")

ANKLES = [f"{side}_ankle_{axis}_joint" for side in ("left", "right") for axis in ("pitch", "roll")]
PATIENCE_S = 120.0


@pytest.fixture
def residual(tmp_path: Path) -> Path:
    coefficients = {joint: {"a": -0.3, "b": 0.0} for joint in ANKLES}
    fields = {"schema": 1, "name": "ankles", "kind": "linear", "mode": "invert", "unit": "rad"}
    path = tmp_path / "residual.yaml"
    path.write_text(yaml.safe_dump({"residual": {**fields, "joints": ANKLES, "coefficients": coefficients}}))
    return path


class Operator:
    """One `onboard` command with its terminal, beside a hanging robot."""

    def __init__(self, arguments: list[str], sim: SimProcess, log: Path) -> None:
        self.sim = sim
        self._log = log
        with log.open("w") as file:
            command = [sys.executable, "-m", "onboard", *arguments]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=file, stderr=file, text=True
            )
        self._read = 0

    def wait_for(self, words: str) -> None:
        """Until the words stand on the terminal, after those that were waited for before."""
        until = time.monotonic() + PATIENCE_S
        while (at := self._log.read_text().find(words, self._read)) < 0:
            assert self.process.poll() is None, f"ended without '{words}': {self._log.read_text()}"
            assert time.monotonic() < until, f"'{words}' did not come: {self._log.read_text()}"
            time.sleep(0.01)
        self._read = at + len(words)

    def answer(self, line: str) -> None:
        """At the next prompt, with the robot in its start pose."""
        self.wait_for("Ctrl-C ends the experiment: ")
        self.sim.tell("reset")
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        """Exit code and everything that was shown."""
        code = self.process.wait(PATIENCE_S)
        return code, self._log.read_text()


@contextmanager
def operator(arguments: list[str], folder: Path) -> Iterator[Operator]:
    plan()  # skips where the policy is not installed
    with free_domain_id() as domain:
        hanging = ["--domain", str(domain), "--gantry", "--start-pose", "crouch", "--released"]
        with SimProcess([*hanging, "--set", "gantry.height_m=0.9"], folder / "sim.json") as sim:
            here = Operator([*arguments, "--domain", str(domain), "--gantry"], sim, folder / "terminal.txt")
            try:
                yield here
            finally:
                if here.process.poll() is None:
                    here.process.send_signal(signal.SIGTERM)
                    here.process.wait(PATIENCE_S)
                if here.process.stdin:
                    here.process.stdin.close()


def judged(residual: Path, files: list[Path], folder: Path) -> dict[str, Any]:
    """`onboard ab --from` on rollouts, which must replay bit by bit too."""
    for file in files:
        assert log_replay.run([str(file)]) == 0, file
    options = ["--from", *map(str, files), "--out", str(folder), "--json", str(folder / "from.json")]
    folder.mkdir()
    assert ab.run([POLICY, "--residual", str(residual), *options]) == 0
    result: dict[str, Any] = json.loads((folder / "from.json").read_text())
    return result


def experiment(residual: Path, folder: Path) -> list[str]:
    options = ["--live", "--protocol", "slow", "--blocks", "1", "--seconds", "2.5"]
    out = ["--out", str(folder / "ab"), "--json", str(folder / "ab.json")]
    return ["ab", POLICY, "--residual", str(residual), *options, *out]


def test_one_block_with_a_safety_stop_in_one_episode(residual: Path, tmp_path: Path) -> None:
    with operator(experiment(residual, tmp_path), tmp_path) as here:
        for number in range(4):
            here.answer("")
            here.wait_for("policy")
            if number == 2:
                here.sim.tell("fault frozen 300")
        code, shown = here.end()
    assert code == 0, shown
    result = json.loads((tmp_path / "ab.json").read_text())
    slow = result["protocols"]["slow"]
    stopped = json.loads((tmp_path / "ab/schedule.json").read_text())["schedule"]["slow"][2]["arm"]
    assert (result["ok"], result["verdict"], slow["aborted"]) == (True, "undecided", [])
    assert slow["failed"] == {"keep": int(stopped == "keep"), "drop": int(stopped == "drop")}, shown
    assert "TICK" in " ".join(slow["stops"][stopped])
    assert "slow, episode 3 of 4: stopped after" in shown
    assert Path(result["report"]).exists()
    assert result["residual_used"]["largest_rad"] > 0
    rollouts = sorted((tmp_path / "ab/rollouts").glob("*.h5"))
    assert len(rollouts) == 4
    again = judged(residual, rollouts, tmp_path / "again")
    assert again["protocols"] == result["protocols"], "the files alone say the same"


def test_an_interrupt_leaves_schedule_and_finished_episodes(residual: Path, tmp_path: Path) -> None:
    with operator(experiment(residual, tmp_path), tmp_path) as here:
        here.answer("")
        here.wait_for("policy")
        here.answer("")
        here.wait_for("policy")
        os.kill(here.process.pid, signal.SIGINT)
        code, shown = here.end()
    assert code == 130, shown
    result = json.loads((tmp_path / "ab.json").read_text())
    assert (result["ok"], len(result["protocols"]["slow"]["aborted"])) == (False, 3)
    rollouts = sorted((tmp_path / "ab/rollouts").glob("*.h5"))
    with Rollout(rollouts[1]) as interrupted:
        assert interrupted.completeness == "complete"
    again = judged(residual, rollouts, tmp_path / "again")["protocols"]["slow"]
    assert (again["episodes"], again["aborted"]) == (2, ["the run ended early: SIGINT"])
    schedule = json.loads((tmp_path / "ab/schedule.json").read_text())["schedule"]["slow"]
    assert [slot["arm"] for slot in schedule].count("keep") == 2


def test_arms_in_blocks_inside_one_run(residual: Path, tmp_path: Path) -> None:
    script = {"press": "go", "until": "policy", "velocity": [0.3, 0.0, 0.0], "for_s": 17.0}
    steps = [{"press": "start", "until": "ramp"}, {"until": "hold"}, script]
    (tmp_path / "script.yaml").write_text(yaml.safe_dump({"steps": steps}))
    options = ["--arm", "blocks", "--block-s", "2", "--note", "slow", "--out", str(tmp_path / "rollouts")]
    command = ["run", POLICY, "--residual", str(residual), "--script", str(tmp_path / "script.yaml")]
    with operator([*command, *options], tmp_path) as here:
        code, shown = here.end()
    assert code == 0, shown
    (rollout,) = (tmp_path / "rollouts").glob("*.h5")
    slow = judged(residual, [rollout], tmp_path / "judged")["protocols"]["slow"]
    assert (slow["episodes"], slow["aborted"], slow["failed"]) == (8, [], {"keep": 0, "drop": 0})
    assert slow["metrics"][0]["episodes"] == 8

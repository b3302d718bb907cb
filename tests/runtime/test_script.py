"""Operator scripts: order, waits, giving up."""

from pathlib import Path

import pytest

from onboard.configs.errors import ConfigError
from onboard.configs.script import ScriptConfig, Step, load_script
from onboard.runtime.script import Script

S = 1_000_000_000


def test_the_demo_script_runs_through() -> None:
    script = Script(load_script("demo"))
    seen: list[tuple[float, str, tuple[float, ...] | None]] = []
    mode = "damp"
    for centisecond in range(4000):
        now = centisecond * S // 100
        script.advance(now, mode)
        if script.pressed:
            seen.append((now / S, script.pressed[0], script.velocity))
        if script.pressed == ["start"]:
            mode = "ramp"
        elif script.pressed == ["go"]:
            mode, entered = "policy", now
        elif mode == "ramp" and now >= 3 * S:
            mode = "hold"
        if script.done:
            break
    assert [action for _, action, _ in seen] == ["start", "go"]
    assert script.done
    assert not script.failure
    assert (now - entered) / S == pytest.approx(20.0, abs=0.03)


def test_velocity_stays_until_another_step_changes_it() -> None:
    script = Script(ScriptConfig((Step(velocity=(0.5, 0.0, 0.0), for_s=1.0), Step(for_s=1.0), Step())))
    script.advance(0, "policy")
    assert script.velocity == (0.5, 0.0, 0.0)
    script.advance(1 * S, "policy")
    assert script.velocity == (0.5, 0.0, 0.0)
    assert not script.done
    script.advance(2 * S, "policy")
    assert script.done


def test_two_presses_are_two_calls() -> None:
    script = Script(ScriptConfig((Step(press="start"), Step(press="go"))))
    script.advance(0, "damp")
    assert script.pressed == ["start"]
    script.advance(0, "damp")
    assert script.pressed == ["go"]
    script.advance(0, "damp")
    assert script.done


def test_a_mode_that_never_comes_is_named() -> None:
    script = Script(ScriptConfig((Step(press="start", until="hold", timeout_s=2.0),)))
    script.advance(0, "damp")
    script.advance(2 * S, "damp")
    assert not script.failure
    script.advance(2 * S + 1, "ramp")
    assert script.failure == "script step 1: mode 'hold' was not reached within 2 s, the mode is 'ramp'"
    script.advance(3 * S, "hold")
    assert not script.done


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: []", "Expected `array` of length >= 1"),
        ("steps: [{press: jump}]", "Invalid enum value 'jump'"),
        ("steps: [{presss: go}]", "unknown key 'presss'"),
        ("steps: [{velocity: [1, 2]}]", "length >= 3"),
        ("steps: [{for_s: -1}]", ">= 0"),
    ],
)
def test_a_wrong_script_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_script(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(ConfigError, match="demo"):
        load_script("nonsense")


def test_a_mode_that_falls_ends_the_script_unless_the_step_waits_for_it() -> None:
    steps = (Step(until="policy", for_s=5.0), Step(press="stop", until="hold"), Step(for_s=1.0))
    fell = Script(ScriptConfig(steps))
    fell.advance(0, "policy")
    fell.advance(1 * S, "damp")
    assert fell.failure == "the mode fell to damp in script step 1"
    meant = Script(ScriptConfig(steps))
    for second, mode in enumerate(("policy",) * 6 + ("policy", "hold", "hold")):
        meant.advance(second * S, mode)
    assert not meant.failure
    assert meant.done

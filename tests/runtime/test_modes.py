from onboard.configs.events import Mode, Tier
from onboard.runtime.modes import Facts, ModeMachine, ModeTimes, Reason
from onboard.runtime.operator_input import OperatorInput


def wishes(*names: str) -> OperatorInput:
    asked = OperatorInput()
    for name in names:
        setattr(asked, name, True)
    return asked


def test_first_mode_is_damp() -> None:
    machine = ModeMachine(0.02, ModeTimes())
    assert machine.step(Tier.NONE, wishes(), Facts()) is Mode.DAMP
    assert machine.status.reason is Reason.BEGIN
    assert not machine.settling


def test_the_whole_walk_from_damp_to_the_end() -> None:
    machine = ModeMachine(0.02, ModeTimes())
    assert machine.step(Tier.NONE, wishes("start"), Facts()) is Mode.RAMP
    assert (machine.status.session, machine.status.rearm) == (1, True)
    assert machine.step(Tier.NONE, wishes(), Facts()) is Mode.RAMP
    assert not machine.status.rearm
    assert machine.step(Tier.NONE, wishes(), Facts(ramp_done=True)) is Mode.HOLD
    assert machine.step(Tier.NONE, wishes("go"), Facts()) is Mode.POLICY
    assert machine.step(Tier.NONE, wishes("stop"), Facts()) is Mode.POLICY
    assert machine.settling
    assert machine.step(Tier.NONE, wishes(), Facts(standing=True)) is Mode.HOLD
    assert not machine.settling
    assert machine.step(Tier.NONE, wishes("go"), Facts()) is Mode.POLICY
    assert machine.step(Tier.NONE, wishes("stop_request"), Facts()) is Mode.POLICY
    modes = []
    while not machine.status.finished:
        modes.append(machine.step(Tier.NONE, wishes("stop_request"), Facts(standing=True)))
        assert machine.settling
        assert len(modes) < 200
    assert modes == [Mode.HOLD] * 50 + [Mode.DAMP] * 51

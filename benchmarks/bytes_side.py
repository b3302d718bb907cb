"""The job on the messages' bytes: take, decode, observe, infer, encode with checksum, write."""

import numpy as np

from benchmarks import pace
from onboard.configs.robot import N_JOINTS
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State
from onboard.runtime.wire import LowCmdWriter, LowStateDecoder

STAGES = ("take", "decode", "observe", "infer", "encode", "write")


def main() -> None:
    """Entry of the process."""
    given = pace.options(str(__doc__))
    policy = pace.make_policy(given)
    state, command = State(), policy.neutral_command()
    decoder, encoder = LowStateDecoder(), LowCmdWriter(np.ones(N_JOINTS, bool))
    with DdsDomain(given.domain, "lo") as dds:
        states = dds.reader(idl.LOW_STATE_TOPIC, idl.LowState)
        commands = dds.writer(idl.LOW_CMD_TOPIC, idl.LowCmd)
        while not states.wait(1.0):
            pass
        policy.reset(state)

        def tick(laps: pace.Laps, number: int) -> None:
            sample = states.take()
            laps.mark()
            if sample is not None:
                decoder.decode(sample.raw, state)
            laps.mark()
            policy.observe(state, command, number)
            laps.mark()
            base = policy.infer()
            target = policy.target(base)
            policy.commit(base)
            laps.mark()
            raw = encoder.fill(target, policy.kp, policy.kd, state.mode_machine)
            laps.mark()
            commands.write(raw)
            laps.mark()

        pace.report(pace.run(STAGES, given, tick))


if __name__ == "__main__":
    main()

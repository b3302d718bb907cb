"""The same job through the vendor's message objects, one state deserialised a tick, its checksum checked.

Taking and writing are split from (de)serialising, which the middleware's Python package does inside
`take` and `write`; the calls are its own.
"""

from unitree_sdk2py.idl.default import unitree_hg_msg_dds__LowCmd_
from unitree_sdk2py.idl.unitree_hg.msg.dds_ import LowCmd_, LowState_
from unitree_sdk2py.utils.crc import CRC

from benchmarks import pace, vendor
from onboard.runtime import idl
from onboard.runtime.dds import DdsDomain
from onboard.runtime.link import State

STAGES = ("take", "deserialise", "check", "read", "observe", "infer", "fill", "crc", "serialise", "write")


def main() -> None:
    """Entry of the process."""
    given = pace.options(str(__doc__))
    policy = pace.make_policy(given)
    state, command = State(), policy.neutral_command()
    message, crc = unitree_hg_msg_dds__LowCmd_(), CRC()
    with DdsDomain(given.domain, "lo") as dds:
        states = dds.reader(idl.LOW_STATE_TOPIC, LowState_)
        commands = dds.writer(idl.LOW_CMD_TOPIC, LowCmd_)
        while not states.wait(1.0):
            pass
        policy.reset(state)

        def tick(laps: pace.Laps, number: int) -> None:
            sample = states.take()
            laps.mark()
            heard = LowState_.deserialize(sample.raw) if sample is not None else None
            laps.mark()
            holds = heard is not None and crc.Crc(heard) == heard.crc
            laps.mark()
            if holds:
                vendor.read_state(heard, state)
            laps.mark()
            policy.observe(state, command, number)
            laps.mark()
            base = policy.infer()
            target = policy.target(base)
            policy.commit(base)
            laps.mark()
            vendor.fill_command(message, target, policy, state.mode_machine)
            laps.mark()
            message.crc = crc.Crc(message)
            laps.mark()
            raw = message.serialize()
            laps.mark()
            commands.write(raw)
            laps.mark()

        pace.report(pace.run(STAGES, given, tick))


if __name__ == "__main__":
    main()

"""The same job as deploy scripts do it: the vendor's subscriber deserialises every state in a callback.

A tick begins with the newest object in hand, so its time leaves the deserialising out; that shows in
the CPU time, and in the wait for the interpreter's lock.
"""

import time
from typing import Any

from unitree_sdk2py.core import channel
from unitree_sdk2py.idl.default import unitree_hg_msg_dds__LowCmd_
from unitree_sdk2py.idl.unitree_hg.msg.dds_ import LowCmd_, LowState_
from unitree_sdk2py.utils.crc import CRC

from benchmarks import pace, vendor
from onboard.runtime import idl
from onboard.runtime.dds import configuration
from onboard.runtime.interfaces import find_interface
from onboard.runtime.link import State

STAGES = ("read", "observe", "infer", "fill", "crc", "write")
QUEUE = 10
"""Length that the vendor's examples give."""


class Newest:
    """Keeps the newest message."""

    def __init__(self) -> None:
        self.message: Any = None

    def __call__(self, message: object) -> None:
        """Take one."""
        self.message = message


def main() -> None:
    """Entry of the process."""
    given = pace.options(str(__doc__))
    policy = pace.make_policy(given)
    state, command = State(), policy.neutral_command()
    # Theirs traces into one fixed file for all users, and finds nobody on loopback.
    channel.ChannelConfigHasInterface = configuration(find_interface("lo"))
    channel.ChannelFactoryInitialize(given.domain, "lo")
    newest = Newest()
    subscriber = channel.ChannelSubscriber(idl.LOW_STATE_TOPIC, LowState_)
    subscriber.Init(newest, QUEUE)
    publisher = channel.ChannelPublisher(idl.LOW_CMD_TOPIC, LowCmd_)
    publisher.Init()
    message, crc = unitree_hg_msg_dds__LowCmd_(), CRC()
    while newest.message is None:
        time.sleep(0.01)
    policy.reset(state)

    def tick(laps: pace.Laps, number: int) -> None:
        vendor.read_policy_inputs(newest.message, state)
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
        publisher.Write(message)
        laps.mark()

    pace.report(pace.run(STAGES, given, tick))
    subscriber.Close()
    publisher.Close()


if __name__ == "__main__":
    main()

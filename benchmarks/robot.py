"""A robot that stands still: 500 states a second, and an ear for commands; ends when its input is closed.

It costs the machine little and always the same, which a physics simulator does not.
"""

import argparse
import math
import select
import sys

import numpy as np

from onboard.runtime import idl, realtime
from onboard.runtime.clock import GridClock
from onboard.runtime.dds import DdsDomain
from onboard.runtime.motion_switcher import MotionSwitcherResponder
from onboard.runtime.wire import ImuEncoder, LowStateEncoder

PERIOD_NS = 2_000_000
TICKS_PER_PERIOD = 2
SWAY_RAD = 0.002
SWAY_HZ = 0.5
MODE_MACHINE = 5
PRIORITY = 30


def main() -> None:
    """Entry of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", type=int, required=True)
    parser.add_argument("--pose", required=True, help="29 joint positions with commas, rad")
    parser.add_argument("--vendor-types", action="store_true", help="publish as unitree_sdk2py's types")
    parser.add_argument("--realtime", action="store_true", help="SCHED_FIFO, below the loops that hear it")
    given = parser.parse_args()
    if given.realtime:
        realtime.setup_realtime(PRIORITY, None)
    pose = np.array([float(value) for value in given.pose.split(",")], np.float32)
    with DdsDomain(given.domain, "lo") as dds:
        _stand(dds, pose, vendor_types=given.vendor_types)


def _stand(dds: DdsDomain, pose: np.ndarray, *, vendor_types: bool) -> None:
    state_type, command_type = _vendor_types() if vendor_types else (idl.LowState, idl.LowCmd)
    states, commands = (
        dds.writer(idl.LOW_STATE_TOPIC, state_type),
        dds.reader(idl.LOW_CMD_TOPIC, command_type),
    )
    torso = dds.writer(idl.TORSO_IMU_TOPIC, idl.ImuState)
    switcher = MotionSwitcherResponder(dds, active="")
    encoder, imu = LowStateEncoder(MODE_MACHINE), ImuEncoder()
    encoder.quat_wxyz[:] = imu.quat_wxyz[:] = (1.0, 0.0, 0.0, 0.0)
    encoder.accel_body[:] = imu.accel[:] = (0.0, 0.0, 9.81)
    clock = GridClock(PERIOD_NS)
    clock.start()
    tick = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        phase = 2.0 * math.pi * SWAY_HZ * tick / 1000.0
        np.add(pose, SWAY_RAD * math.sin(phase), out=encoder.q)
        encoder.dq[:] = 2.0 * math.pi * SWAY_HZ * SWAY_RAD * math.cos(phase)
        states.write(encoder.seal(tick))
        torso.write(imu.buffer)
        commands.take()
        switcher.serve()
        tick += TICKS_PER_PERIOD * (1 + clock.wait())


def _vendor_types() -> tuple[type, type]:
    from unitree_sdk2py.idl.unitree_hg.msg.dds_ import LowCmd_, LowState_

    return LowState_, LowCmd_


if __name__ == "__main__":
    main()

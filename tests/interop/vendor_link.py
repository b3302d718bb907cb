"""The controller's side played by `SdkLink`: `python -m tests.interop.vendor_link DOMAIN`."""

import sys

import numpy as np

from onboard.runtime.link import COMMAND, Kind
from onboard.runtime.sdk_link import SdkLink
from tests.interop import pattern
from tests.interop.ours import expected_state, found_state

if __name__ == "__main__":
    joints = len(pattern.JOINTS)
    link = SdkLink(int(sys.argv[1]), "lo", np.ones(joints, dtype=bool), np.full(joints, 3.0, np.float32))
    link.open()
    command = np.zeros((), COMMAND)
    command["kind"], command["mode_machine"] = Kind.PASS, pattern.MODE_MACHINE
    command["q"], command["kp"], command["kd"] = pattern.COMMAND_Q, pattern.COMMAND_KP, pattern.COMMAND_KD

    def receive() -> str | None:
        """Check the newest state, if there is a new one."""
        state = link.latest()
        if not state.new:
            return None
        fresh = state.age_s < 1.0 and state.source_time_ns > 0 and not state.crc_errors
        return ("" if fresh else "age or checksum; ") + pattern.differing(
            found_state(state), expected_state()
        )

    sys.exit(pattern.run(lambda: link.send(command), receive))

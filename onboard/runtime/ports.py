"""What the processes of one run tell each other: record types of the shared-memory rings, one writer each.

```
ring      writer    readers                  what
command   control   gateway                  the newest target (`link.COMMAND`)
record    control   recorder                 one row a tick (`logging.layout.record_dtype`)
control   control   parent, status           mode, tier, heartbeat
sent      gateway   recorder                 one row a publication, true send times
gateway   gateway   control, parent, status  state, reason, heartbeat
recorder  recorder  control, parent, status  rows, losses, link statistics, estimates, external pose
operator  parent    control, gateway, recorder  heartbeat, buttons by key or script, requests
run       parent    status                   what runs, written once
```
"""

from pathlib import Path

import numpy as np

from onboard.runtime.link import COMMAND
from onboard.runtime.shm import Layout, Shared, ShmError

TEXT = "S160"
"""One line of text, for reasons."""

SENT = np.dtype(
    [
        ("number", "<u8"),  # of the command in force, 0 before the first
        ("send_ns", "<i8"),  # CLOCK_MONOTONIC just after the write
        ("session", "<u4"),
        ("state", "u1"),  # gateway_core.GatewayState
        ("reason", "u1"),  # gateway_core.Reason
        ("repeat", "u1"),  # 0: first publication of this number
        ("pad", "V1"),
    ]
)

CONTROL = np.dtype(
    [
        ("heartbeat_ns", "<i8"),
        ("tick", "<u8"),
        ("events", "<u8"),  # safety events active in this tick
        ("events_seen", "<u8"),  # every event since the start
        ("policy_rows", "<u8"),  # ticks in mode policy before the stop request
        ("skipped_ticks", "<u8"),
        ("session", "<u4"),
        ("skipped_now", "<u4"),
        ("state_age_s", "<f4"),
        ("tick_us", "<f4"),
        ("wake_late_us", "<f4"),
        ("velocity", "<f4", 3),  # command in force, body frame
        ("mode", "u1"),
        ("tier", "u1"),
        ("safety_flag", "u1"),
        ("finished", "u1"),  # the stop sequence is complete
        ("ready", "u1"),  # everything is loaded and the robot was heard; waits for `begin`
        ("realtime", "u1"),  # SCHED_FIFO granted
        ("pad", "V2"),
        ("reason", TEXT),  # of the last change of mode
        ("rights", TEXT),  # real-time rights, asked and answered
    ]
)

GATEWAY = np.dtype(
    [
        ("heartbeat_ns", "<i8"),
        ("number", "<u8"),
        ("published", "<u8"),
        ("foreign", "<u8"),  # samples of other publishers heard on rt/lowcmd
        ("latched_ns", "<i8"),  # when the last latch happened, 0 never
        ("last_made_ns", "<i8"),  # made_ns of the last command passed on
        ("session", "<u4"),
        ("matched", "<u4"),  # readers of our rt/lowcmd
        ("state", "u1"),
        ("reason", "u1"),
        ("ready", "u1"),
        ("realtime", "u1"),
        ("mode_machine", "u1"),  # as the robot last reported it
        ("pad", "V3"),
        ("rights", TEXT),
    ]
)

RECORDER = np.dtype(
    [
        ("heartbeat_ns", "<i8"),
        ("rows", "<u8"),  # written to the journal
        ("lost", "<u8"),  # handed over, never written
        ("behind", "<u4"),  # handed over, not yet written
        ("ready", "u1"),
        ("closed", "u1"),  # nothing is left to do; the rollout is there unless the exit code is 3
        ("full", "u1"),  # the disk refuses; rows are being lost
        ("pad", "V1"),
        ("disk_free", "<i8"),
        ("received", "<u8"),  # LowState samples at the full rate
        ("gaps", "<u8"),  # samples missing by robot tick
        ("reordered", "<u8"),
        ("duplicates", "<u8"),
        ("crc_errors", "<u8"),
        ("crc_rate", "<f4"),  # share of bad checksums over the last second
        ("contact_force", "<f4", 2),  # N, left and right; NaN unknown
        ("base_velocity", "<f4", 3),  # m/s, body frame; NaN unknown
        ("contact_ns", "<i8"),  # when the estimate was made, 0 never
        ("external_pose_ns", "<i8"),  # stamp of the newest external pose by its sender's clock, 0 for none
        ("external_recv_ns", "<i8"),  # when it came by CLOCK_MONOTONIC, less what it came late
        ("external_pose", "<f8", 7),  # m and quaternion w, x, y, z, world from pelvis
        ("external_received", "<u8"),
        ("external_dropped", "<u8"),  # of these: damaged, no pose, late or repeated
        ("external_velocity", "<f4", 3),  # m/s, body frame; NaN unknown
        ("contact", "i1", 2),  # 0, 1, or -1 unknown
        ("battery", "i1"),  # per cent of charge; -1 where it is not published
        ("pad2", "V1"),
    ]
)

OPERATOR = np.dtype(
    [
        ("heartbeat_ns", "<i8"),
        ("starts", "<u4"),  # edge counters: keys and script press buttons through these
        ("gos", "<u4"),
        ("stops", "<u4"),
        ("damps", "<u4"),
        ("limps", "<u4"),
        ("marks", "<u4"),
        ("switches", "<u4"),
        ("switch_to", "<i4"),  # index of the policy that the newest switch asks for, -1 the next one
        ("velocity", "<f4", 3),  # vx, vy, wz from keys or script
        ("velocity_valid", "u1"),  # keys or script are in charge of the velocity
        ("stop_request", "u1"),  # end the run in order
        ("damp_request", "u1"),  # damp now, and end
        ("terminal_lost", "u1"),
        ("recorder_stop", "u1"),  # close the journal and convert
        ("gateway_lost", "u1"),  # the standby writer has taken over
        ("control_done", "u1"),  # control has ended; the gateway may end its damping
        ("begin", "u1"),  # the motors are ours: control may begin
        ("end_reason", TEXT),
    ]
)


RUN = np.dtype(
    [
        ("robot", TEXT),  # its description, as given to `load_robot`
        ("policies", "S1024"),  # names with commas, in the order of their index
        ("journal", "S1024"),  # its path
        ("interface", "S64"),
        ("domain", "<u4"),
        ("dry", "u1"),
        ("pad", "V3"),
        ("period_ns", "<i8"),
        ("wall_ns", "<i8"),  # when it began, as in its journal's header: which run this is
    ]
)


def run_layout(record: np.dtype) -> Layout:
    """Rings of one run; `record` is the row type of its policies. 30 s of rows fit."""
    return {**_FIXED, "record": (record, 1500)}


def open_shared(path: Path, *, read_only: bool = False) -> Shared:
    """Map the shared memory of a run of this version; arguments as of `Shared.open`.

    Raises:
        ShmError: missing, or its rings are not those of this version.
    """
    shared = Shared.open(path, read_only=read_only)
    wrong = [name for name, entry in _FIXED.items() if shared.layout.get(name) != entry]
    if wrong or "record" not in shared.layout:
        shared.close()
        raise ShmError(
            f"{path}: made by another version of onboard (it differs in {', '.join(wrong) or 'record'}); "
            "use the version that started this run, or end the run and start it again with this one"
        )
    return shared


_FIXED: Layout = {
    "command": (COMMAND, 8),
    "sent": (SENT, 4096),
    "control": (CONTROL, 4),
    "gateway": (GATEWAY, 4),
    "recorder": (RECORDER, 4),
    "operator": (OPERATOR, 4),
    "run": (RUN, 1),
}

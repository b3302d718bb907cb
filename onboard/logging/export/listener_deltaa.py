"""The npz that ASAP's `listener_deltaa.py` saves, key by key.

That listener samples the newest state and the newest command at once; a command in force when a state is
measured was computed from the state before. So row k holds a state of the rollout and the command of the
row before it, and the first row of a stretch, whose command nobody knows, is left out.
"""

import numpy as np

from onboard.logging.export.clips import Clip
from onboard.logging.export.rootpose import root_pose

EXTERNAL = ("pos", "quat", "lin_vel", "ang_vel")
"""Keys that come from motion capture; all NaN where the run had none."""


def arrays(clip: Clip) -> dict[str, np.ndarray]:
    """One clip, n-1 rows.

    Keys: `time` s, robot clock; `joint_pos, joint_vel, tau_est, joint_pos_cmd, joint_vel_cmd, kp, kd,
    tau_cmd` (n-1, 29), the velocity and torque commands are zero because this runtime sends none;
    `IMU_quaternion` w x y z, `IMU_gyro`, `IMU_acc`; `pos`, `quat` w x y z, `lin_vel`, `ang_vel` of the
    pelvis in the world, from the external pose and its differences, NaN where there is none.
    Further: `missing`, `about` (JSON).
    """
    track = clip.track
    root = root_pose(track, clip.period_s)
    external = root.position_from == "external"
    none = np.full((len(clip), 4), np.nan)
    state = {
        "time": track["time_s"],
        "joint_pos": track["q"],
        "joint_vel": track["dq"],
        "tau_est": track["tau_est"],
        "IMU_quaternion": track["quat_wxyz"],
        "IMU_gyro": track["gyro_body"],
        "IMU_acc": track["accel_body"],
        "pos": root.position_m,
        "quat": root.quat_wxyz if external else none,
        "lin_vel": root.velocity(clip.period_s),
        "ang_vel": root.spin(clip.period_s),
    }
    zeros = np.zeros_like(track["action_sent"])
    command = {
        "joint_pos_cmd": track["action_sent"],
        "joint_vel_cmd": zeros,
        "kp": track["kp"],
        "kd": track["kd"],
        "tau_cmd": zeros,
    }
    return {
        **{name: column[1:] for name, column in state.items()},
        **{name: column[:-1] for name, column in command.items()},
        "missing": np.array([] if external else EXTERNAL, dtype=str),
        "about": np.array(clip.account(**root.sources)),
    }

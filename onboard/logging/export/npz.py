"""Plain npz for scripts that fit a delta: `t, q, dq, target, tau, quat, gyro`.

Row k holds the state at `t[k]` and the target that was computed from it and acted until row k+1.
`onboard fit` reads these keys from any source, not only from here.
"""

import numpy as np

from onboard.logging.export.clips import Clip


def arrays(clip: Clip) -> dict[str, np.ndarray]:
    """One clip.

    Keys: `t` (n,) s, robot clock, 0 at the first row; `q` rad, `dq` rad/s, `target` rad (what reached the
    motors), `tau` N·m, all (n, 29) SDK motor order; `quat` (n, 4) w x y z; `gyro` (n, 3) rad/s, pelvis.
    Further: `kp`, `kd` (n, 29), NaN where unknown; `contact` (n, 2), -1 where unknown; `base_velocity`
    (n, 3) m/s, pelvis frame, the robot's own estimate, NaN where unknown; `joint_names`, `period_s`,
    `about` (JSON).
    """
    track = clip.track
    return {
        "t": track["time_s"] - track["time_s"][0],
        "q": track["q"],
        "dq": track["dq"],
        "target": track["action_sent"],
        "tau": track["tau_est"],
        "quat": track["quat_wxyz"],
        "gyro": track["gyro_body"],
        "kp": track["kp"],
        "kd": track["kd"],
        "contact": track["contact"],
        "base_velocity": track["base_velocity"],
        "joint_names": np.array(clip.joint_names),
        "period_s": np.array(clip.period_s),
        "about": np.array(clip.account()),
    }

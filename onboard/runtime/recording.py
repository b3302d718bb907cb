"""Entry of the recorder process: the recorder with the estimator that its room may not know.

    python -m onboard.runtime.recording --shm FILE --journal FILE --robot NAME [...]

Options: `onboard.logging.recorder`.
"""

import sys

from onboard.configs.bodies import has_bodies
from onboard.configs.robot import load_robot
from onboard.logging.recorder import main
from onboard.policies.estimators.estimator import LegOdometry, make_odometry


def estimator(name: str) -> LegOdometry | None:
    """Of a robot by its description; None where there is no table of its links."""
    robot = load_robot(name)
    return make_odometry(robot) if has_bodies(robot.name) else None


if __name__ == "__main__":
    sys.exit(main(make_estimator=estimator))

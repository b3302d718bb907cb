"""Entry of the recorder process: the recorder with the estimator that its room may not know.

    python -m onboard.runtime.recording --shm FILE --journal FILE --robot JSON [...]

Options: `onboard.logging.recorder`. The robot's description comes as the parent read it: whoever takes over
from a killed recorder must not depend on what has become of the file since.
"""

import sys

import msgspec

from onboard.configs.bodies import has_bodies
from onboard.configs.robot import RobotConfig
from onboard.logging.recorder import main
from onboard.policies.estimators.estimator import LegOdometry, make_odometry


def estimator(description: str) -> LegOdometry | None:
    """Of a robot by its description as JSON; None where there is no table of its links."""
    robot = msgspec.json.decode(description, type=RobotConfig)
    return make_odometry(robot) if has_bodies(robot.name) else None


if __name__ == "__main__":
    sys.exit(main(make_estimator=estimator))

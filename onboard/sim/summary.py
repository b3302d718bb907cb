"""What a run of the simulated robot came to."""

from dataclasses import dataclass

from onboard.sim.robot import ACCEPTED, IGNORED, SimRobot


@dataclass(frozen=True)
class Summary:
    """A run in numbers.

    Attributes:
        end: why it ended.
        seconds, simulated_s: real and simulated time, s.
        real_time_factor: the latter by the former.
        periods, skipped_periods: publications of LowState, and those left out after a hold-up.
        accepted, ignored: commands obeyed, and those that met the built-in controller.
        refused: commands refused, by reason.
        damped_by_silence: how often commands stopped for so long that the robot damped itself.
        torque_saturated: fraction of the steps with any joint at its torque limit.
        saturated_joints: the same joint by joint, those at 0 left out.
        explicit_pd_eigenvalue: see `model.ExplicitPd`; of the worst gains.
        warnings: lines for people.
    """

    end: str
    seconds: float
    simulated_s: float
    real_time_factor: float
    periods: int
    skipped_periods: int
    accepted: int
    ignored: int
    refused: dict[str, int]
    damped_by_silence: int
    torque_saturated: float
    saturated_joints: dict[str, float]
    explicit_pd_eigenvalue: float
    warnings: list[str]


def summarise(robot: SimRobot, end: str, seconds: float, periods: int, skipped: int) -> Summary:
    """Collect a run's numbers from its robot."""
    motors, simulated = robot.physics.motors, robot.physics.time_s
    share = motors.saturated_steps / max(1, motors.steps)
    names = robot.physics.model.robot.joint_names
    warning = robot.explicit_pd.warning(robot.config.timestep_s)
    return Summary(
        end=end,
        seconds=round(seconds, 3),
        simulated_s=round(simulated, 3),
        real_time_factor=round(simulated / seconds, 4) if seconds else 0.0,
        periods=periods,
        skipped_periods=skipped,
        accepted=robot.verdicts[ACCEPTED],
        ignored=robot.verdicts[IGNORED],
        refused={reason: n for reason, n in robot.verdicts.items() if reason not in (ACCEPTED, IGNORED)},
        damped_by_silence=robot.damped_by_silence,
        torque_saturated=motors.saturated,
        saturated_joints={name: float(part) for name, part in zip(names, share, strict=True) if part},
        explicit_pd_eigenvalue=robot.explicit_pd.eigenvalue,
        warnings=[warning] if warning else [],
    )

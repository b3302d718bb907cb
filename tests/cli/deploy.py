"""A deploy.yaml as unitree_rl_lab writes it, for a policy of 96 inputs and 29 outputs."""

from typing import Any


def deploy_data() -> dict[str, Any]:
    """Its contents, sound until somebody spoils them."""
    term: dict[str, Any] = {"params": {}, "clip": None, "history_length": 1}
    scales = {
        "base_ang_vel": 3,
        "projected_gravity": 3,
        "velocity_commands": 3,
        "joint_pos_rel": 29,
        "joint_vel_rel": 29,
        "last_action": 29,
    }
    return {
        "joint_ids_map": list(range(29)),
        "step_dt": 0.02,
        "stiffness": [40.0] * 29,
        "damping": [2.0] * 29,
        "default_joint_pos": [0.0] * 29,
        "commands": {"base_velocity": {"ranges": {"lin_vel_x": [-0.5, 1.0]}}},
        "actions": {"JointPositionAction": {"clip": None, "scale": [0.25] * 29, "offset": [0.0] * 29}},
        "observations": {name: term | {"scale": [1.0] * width} for name, width in scales.items()},
    }

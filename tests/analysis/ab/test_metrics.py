"""Figures of an episode, from rows whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from onboard.analysis.ab.metrics import Subject, episode_metrics, make_subject, residual_share
from tests.policies.models import ROBOT, tiny_bundle

ROWS = 200
SETTLED = 25
ANKLES = [4, 5, 10, 11]


def subject(reference: np.ndarray | None = None) -> Subject:
    groups = {"ankles": ANKLES, "legs": [slot for slot in range(12) if slot not in ANKLES]}
    return Subject(np.arange(12), np.full(12, 0.25), reference, groups, 0.02)


def rows(**changes: np.ndarray) -> dict[str, np.ndarray]:
    plain = {
        "q": np.zeros((ROWS, 29)),
        "dq": np.zeros((ROWS, 29)),
        "tau_est": np.zeros((ROWS, 29)),
        "target": np.zeros((ROWS, 29)),
        "command": np.zeros((ROWS, 8)),
        "base_velocity": np.zeros((ROWS, 3)),
        "external_velocity": np.full((ROWS, 3), np.nan),
        "external_age_s": np.full(ROWS, np.nan),
        "quat_wxyz": np.tile([1.0, 0.0, 0.0, 0.0], (ROWS, 1)),
        "contact": np.ones((ROWS, 2), np.int8),
        "motion_index": np.arange(ROWS),
        "action_policy": np.zeros((ROWS, 12)),
        "action_residual": np.zeros((ROWS, 12)),
        "action_combined": np.zeros((ROWS, 12)),
    }
    return plain | changes


def test_tracking_compares_the_policys_own_target_with_the_next_position() -> None:
    added, target, q = np.zeros((ROWS, 12)), np.full((ROWS, 29), 0.3), np.zeros((ROWS, 29))
    added[:, ANKLES] = 0.4  # raw: 0.1 rad of the target are the residual's
    q[::2] = 0.1  # the row after an even one is at 0
    found = episode_metrics(rows(target=target, q=q, action_combined=added), subject())
    even, odd = 0.3, 0.2
    assert found["tracking_rad legs"] == pytest.approx((even + odd) / 2, abs=0.001)
    assert found["tracking_rad ankles"] == pytest.approx((even + odd) / 2 - 0.1, abs=0.001)
    assert found["tracking_rad"] == pytest.approx((even + odd) / 2 - 0.1 / 3, abs=0.001)


def test_a_shadow_takes_nothing_off_the_target() -> None:
    target = np.full((ROWS, 29), 0.3)
    found = episode_metrics(rows(target=target, action_residual=np.full((ROWS, 12), 9.0)), subject())
    assert found["tracking_rad"] == pytest.approx(0.3)


def test_a_tracking_policy_is_compared_with_its_reference() -> None:
    reference = np.tile(np.linspace(0, 1, ROWS)[:, None], (1, 29))
    found = episode_metrics(rows(q=reference + 0.05), subject(reference))
    assert found["mpjpe_rad"] == pytest.approx(0.05)
    assert "velocity_error_m_s" not in found


def test_walking_has_velocity_and_tilt() -> None:
    velocity, command = np.zeros((ROWS, 3)), np.zeros((ROWS, 8))
    command[:, 0], velocity[:, 0], velocity[:, 1] = 0.5, 0.2, 0.4
    half = 0.05
    quat = np.tile([np.cos(half), np.sin(half), 0.0, 0.0], (ROWS, 1))
    found = episode_metrics(rows(base_velocity=velocity, command=command, quat_wxyz=quat), subject())
    assert found["velocity_error_m_s"] == pytest.approx(0.5)
    assert found["tilt_rad"] == pytest.approx(0.1)


def test_the_velocity_seen_from_outside_counts_where_it_was_heard_all_the_time() -> None:
    seen, age_s = np.tile([0.3, 0.4, 0.0], (ROWS, 1)), np.full(ROWS, 0.01)
    given = {"external_velocity": seen, "external_age_s": age_s, "base_velocity": np.zeros((ROWS, 3))}
    assert episode_metrics(rows(**given), subject())["velocity_error_m_s"] == pytest.approx(0.5)
    age_s[-3] = 0.2
    assert episode_metrics(rows(**given), subject())["velocity_error_m_s"] == 0.0


def test_an_unknown_velocity_is_left_out_instead_of_guessed() -> None:
    found = episode_metrics(rows(base_velocity=np.full((ROWS, 3), np.nan)), subject())
    assert "velocity_error_m_s" not in found
    assert "tilt_rad" in found


def test_effort_and_action_rate() -> None:
    tau, dq, action = np.zeros((ROWS, 29)), np.zeros((ROWS, 29)), np.zeros((ROWS, 12))
    tau[:, 3], dq[:, 3] = 29.0, -2.0
    action[::2] = 0.5
    found = episode_metrics(rows(tau_est=tau, dq=dq, action_policy=action), subject())
    assert found["torque_nm"] == pytest.approx(1.0)
    assert found["power_w"] == pytest.approx(58.0)
    assert found["action_rate"] == pytest.approx(0.5)


def test_the_error_is_split_by_contact_phase() -> None:
    contact, target = np.ones((ROWS, 2), np.int8), np.zeros((ROWS, 29))
    contact[100:150], target[100:150] = 0, 0.4
    found = episode_metrics(rows(contact=contact, target=target), subject())
    assert found["tracking_rad in flight"] == pytest.approx(0.4, abs=0.02)
    assert found["tracking_rad in stance"] == pytest.approx(0.0, abs=0.02)


def test_the_fade_in_does_not_count_and_a_short_episode_has_no_figures() -> None:
    target = np.zeros((ROWS, 29))
    target[:SETTLED] = 9.0
    assert episode_metrics(rows(target=target), subject())["tracking_rad"] == 0.0
    short = {name: values[: SETTLED + 10] for name, values in rows().items()}
    assert episode_metrics(short, subject()) == {}


def test_the_residuals_share_of_the_action_range() -> None:
    target, added = np.zeros((ROWS, 29)), np.zeros((ROWS, 12))
    target[:] = np.linspace(-0.5, 0.5, ROWS)[:, None]
    added[50, 4] = 1.0
    largest, share = residual_share(rows(target=target, action_residual=added), subject(), np.zeros(29))
    assert largest == pytest.approx(0.25)
    assert share == pytest.approx(0.25 / 0.98, rel=0.02)


def test_a_subject_is_made_of_a_bundle(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path, [{"terms": [{"term": "joint_pos"}]}], 12)
    found = make_subject(bundle, ROBOT)
    assert found.slots.tolist() == list(range(12))
    assert found.scale.tolist() == [0.25] * 12
    assert found.groups == {"ankles": ANKLES, "legs": [0, 1, 2, 3, 6, 7, 8, 9]}
    assert found.primary == "tracking_rad"

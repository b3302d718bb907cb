"""Figures of a rollout that show where simulator and robot part, and what policy and residual ask for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import welch

from onboard.analysis.prediction import PHASES, Prediction, predict
from onboard.analysis.replay_sim import stretch
from onboard.configs.events import Mode
from onboard.logging.layout import STAGES
from onboard.logging.rollout import Rollout

Float64Array = NDArray[np.float64]

PERCENTILES = (1, 25, 50, 75, 99)
WELCH_ROWS = 128
"""Rows of a piece of which a spectrum is made: 2.56 s at 50 Hz."""


@dataclass(frozen=True)
class Spectrum:
    """Welch's power spectral density.

    Attributes:
        hz: (m,) frequencies.
        power: (m, k) of every column, unit² per Hz.
    """

    hz: Float64Array
    power: Float64Array

    def share_above(self, hz: float) -> float:
        """Part of all power at and above a frequency; 0 where there is no power."""
        total = float(self.power.sum())
        return float(self.power[self.hz >= hz].sum()) / total if total > 0 else 0.0


@dataclass(frozen=True)
class Diagnosis:
    """Everything that the picture shows.

    Attributes:
        joints: (29,) names.
        prediction: of the stretch.
        actions: raw actions by name (`before` and `after` the residual), each (rows, A).
        residual: (rows, A) what the residual added, raw; None where none ever did.
        spectra: of the policy's action, the residual, the sent targets.
        stages_us: stage to p50 and p99.
        period_ms: (n-1,) of the control loop.
    """

    joints: tuple[str, ...]
    prediction: Prediction
    actions: dict[str, NDArray[np.float32]]
    residual: NDArray[np.float32] | None
    spectra: dict[str, Spectrum]
    stages_us: dict[str, tuple[float, float]]
    period_ms: Float64Array

    def figures(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        found = self.prediction
        one_step = np.sqrt(np.nanmean(found.one_step_rad**2, axis=0))
        whole = np.sqrt(np.nanmean(found.whole_rad**2, axis=0))
        return {
            "seconds": float(found.time_s[-1]),
            "one_step_rms_rad": dict(zip(self.joints, one_step.tolist(), strict=True)),
            "whole_rms_rad": dict(zip(self.joints, whole.tolist(), strict=True)),
            "one_step_rms_rad_by_phase": {
                phase: dict(zip(self.joints, values.tolist(), strict=True))
                for phase, values in found.by_phase().items()
            },
            "phase_rows": {name: int((found.phase == index).sum()) for index, name in enumerate(PHASES)},
            "actions": {
                name: {f"p{p}": float(np.percentile(values, p)) for p in PERCENTILES}
                for name, values in self.actions.items()
                if values.size
            },
            "power_above_5_hz": {name: each.share_above(5.0) for name, each in self.spectra.items()},
            "stage_us": {name: {"p50": p50, "p99": p99} for name, (p50, p99) in self.stages_us.items()},
            "period_ms": {f"p{p}": float(np.percentile(self.period_ms, p)) for p in PERCENTILES},
        }


def diagnose(rollout: Rollout, start_s: float, seconds: float, *, held: bool) -> Diagnosis:
    """Look at one stretch of a policy.

    Args:
        rollout: the log.
        start_s: from the policy's first row on.
        seconds: at most.
        held: the robot hung.

    Raises:
        RolloutError: there is no such stretch.
    """
    part = stretch(rollout, start_s, seconds, held=held)
    rows = slice(part.first, part.first + len(part.kp))
    policy = rollout.policies[int(rollout.column("policy", rows)[0])]
    mine = slice(*np.searchsorted(policy.rows, [rows.start, rows.stop]).tolist())
    actions = {
        "before": policy.column("action_policy", mine),
        "after": policy.column("action_combined", mine),
    }
    actions = {name: values[np.isfinite(values).all(axis=1)] for name, values in actions.items()}
    added = policy.column("action_residual", mine)
    residual = added if np.nan_to_num(added).any() else None
    named = {"action": actions["before"], "sent target": part.columns["action_sent"]}
    if residual is not None:
        named["residual"] = np.nan_to_num(residual)
    stage_us = rollout.column("stage_ns", rows) / 1e3
    return Diagnosis(
        joints=rollout.joint_names,
        prediction=predict(part),
        actions=actions,
        residual=residual,
        spectra={name: _spectrum(values, rollout.period_s) for name, values in named.items()},
        stages_us={
            name: (float(np.median(column)), float(np.percentile(column, 99)))
            for name, column in zip(STAGES, stage_us.T, strict=True)
        },
        period_ms=np.diff(rollout.column("made_ns", rows)) / 1e6,
    )


def hangs(rollout: Rollout) -> bool:
    """The estimator never saw a foot on the ground while a policy ran."""
    contact = rollout.column("contact")[rollout.column("mode") == Mode.POLICY]
    return not (contact == 1).any()


def _spectrum(values: np.ndarray, period_s: float) -> Spectrum:
    size = min(WELCH_ROWS, len(values))
    hz, power = welch(values.astype(np.float64), fs=1.0 / period_s, nperseg=size, axis=0)
    return Spectrum(hz, power)

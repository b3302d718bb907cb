"""Fills the record of a tick: copies into one preallocated row, nothing else."""

from typing import TYPE_CHECKING

import numpy as np

from onboard.configs.events import Mode
from onboard.logging.layout import blank_record
from onboard.runtime.link import State
from onboard.runtime.operator_input import OperatorInput
from onboard.runtime.stages import Stages

if TYPE_CHECKING:
    from onboard.runtime.loop import ControlLoop
    from onboard.runtime.pilot import Pilot

_ACTIONS = ("action_policy", "action_residual", "action_combined")


class TickRecorder:
    """Owns the row.

    Args:
        dtype: of a row, `logging.layout.record_dtype`.

    Attributes:
        row: the newest tick's record, overwritten in place.
        stages: durations of this tick.
        skipped_ticks: grid periods skipped so far.
        policy_rows: ticks in mode policy before the run was asked to end.
        events_seen: every event since the start.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self.row = blank_record(dtype)
        self.stages = Stages()
        self.skipped_ticks = 0
        self.skipped_now = 0
        self.policy_rows = 0
        self.events_seen = 0
        self._tick = -1
        self._views = {name: self.row[name] for name in dtype.names or () if dtype[name].shape}

    def begin(self, skipped: int, late_ns: int) -> Stages:
        """A tick begins."""
        self._tick += 1 + skipped
        self.skipped_ticks += skipped
        self.skipped_now = skipped
        self.row["wake_late_ns"] = min(late_ns, 2**31 - 1)
        self.stages.begin()
        return self.stages

    def fill(
        self, loop: "ControlLoop", mode: Mode, newest: State, state: State, asked: OperatorInput
    ) -> np.ndarray:
        """Copy the tick in.

        Args:
            loop: its parts hold what was decided.
            mode: that the command was made in.
            newest: the link's sample, for clocks and checksum.
            state: what was acted on; the last good sample where the newest was unusable.
            asked: the operator's wishes.
        """
        row, gate, status = self.row, loop.gate, loop.machine.status
        self._copy_state(state)
        row["state_new"], row["crc_ok"], row["state_age_s"] = newest.new, newest.crc_ok, newest.age_s
        self._copy_decision(loop, mode)
        row["tick"], row["skipped_ticks"], row["mark"] = self._tick, self.skipped_ticks, asked.marks
        row["mode"], row["tier"], row["safety_events"] = mode, gate.tier, gate.events
        row["safety_flag"] = gate.flag
        self.events_seen |= gate.events
        if mode is Mode.POLICY and not status.stopping:
            self.policy_rows += 1
        self.stages.mark()
        self._views["stage_ns"][:] = self.stages.durations
        return row

    def _copy_state(self, state: State) -> None:
        row, views = self.row, self._views
        row["robot_tick"], row["source_time_ns"] = state.robot_tick, state.source_time_ns
        row["recv_ns"] = state.recv_ns
        views["q"][:] = state.q
        views["dq"][:] = state.dq
        views["tau_est"][:] = state.tau_est
        views["motor_temperature"][:] = state.temperature
        views["motor_fault"][:] = state.motor_fault
        views["quat_wxyz"][:] = state.quat_wxyz
        views["gyro_body"][:] = state.gyro_body
        views["accel_body"][:] = state.accel_body
        views["torso_quat_wxyz"][:] = state.torso_quat_wxyz
        views["torso_gyro"][:] = state.torso_gyro
        views["remote"][:] = state.remote

    def _copy_decision(self, loop: "ControlLoop", mode: Mode) -> None:
        row, views, pilot = self.row, self._views, loop.pilot
        row["number"], row["made_ns"] = loop.command["number"], loop.command["made_ns"]
        views["target"][:] = pilot.target
        views["action_sent"][:] = loop.sent
        views["limit_mask"][:] = loop.gate.limit_mask
        views["command"][:] = pilot.command.values
        views["contact"][:] = loop.provision.contact
        views["contact_force"][:] = loop.provision.contact_force
        views["base_velocity"][:] = loop.provision.base_velocity
        views["external_pose"][:] = loop.provision.external.pose
        views["external_velocity"][:] = loop.provision.external.base_velocity
        row["external_pose_ns"] = loop.provision.external.pose_ns
        row["external_age_s"] = loop.provision.external_age_s
        row["kp_scale"] = pilot.kp_scale
        row["arm"] = pilot.slot.arm
        inside = mode is Mode.POLICY
        row["policy"] = pilot.repertoire.index if inside else -1
        row["episode"], row["step"] = max(pilot.episode, 0), pilot.step if inside else 0
        row["motion_index"] = pilot.policy.motion_index if inside else -1
        views["phase"][:] = pilot.policy.phase
        if inside:
            self._copy_policy(pilot)

    def _copy_policy(self, pilot: "Pilot") -> None:
        """What the network saw and said; NaN where it gave nothing."""
        views, policy = self._views, pilot.policy
        views["obs"][: policy.obs.size] = policy.obs
        said = (pilot.base, pilot.slot.added, pilot.combined)
        for name, action in zip(_ACTIONS, said, strict=True):
            views[name][: policy.raw.size] = np.nan if pilot.base is None else action
        start = 0
        for values in policy.extras.values():
            views["extras"][start : start + values.size] = values.reshape(-1)
            start += values.size

"""What a run does now, read from its shared memory by somebody who only looks on.

Nothing here writes: the mapping is opened read-only, so an onlooker may be slow, stop or die without
effect on the run.
"""

import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from onboard.configs.events import Arm, Mode, Tier, names
from onboard.configs.robot import RobotConfig, load_robot
from onboard.runtime.gateway_core import GatewayState, Reason
from onboard.runtime.parent import Statuses
from onboard.runtime.ports import RUN, open_shared
from onboard.runtime.shm import ShmError, default_folder

TIMED_ROWS = 50
"""Ticks that the timing figures look back: one second."""
EVENTS_KEPT = 8
JOINTS_SHOWN = 5


def find_run(pid: int | None = None, folder: Path | None = None) -> Path:
    """The mapping of a run that is alive: the newest, or that of the given `onboard run` process.

    Raises:
        ShmError: there is none.
    """
    folder = folder or default_folder()
    wanted = "*" if pid is None else str(pid)
    alive = [path for path in folder.glob(f"onboard-{wanted}-*.shm") if is_alive(path)]
    if not alive:
        whose = "" if pid is None else f" with process id {pid}"
        raise ShmError(f"{folder}: no run{whose} is going on here; start one with `onboard run POLICY`")
    return max(alive, key=lambda path: path.stat().st_mtime_ns)


def is_alive(mapping: Path) -> bool:
    """Whether the parent that made a mapping still lives and has not removed it."""
    owner = mapping.name.split("-")[1]
    return mapping.exists() and Path("/proc", owner).exists()


class RunView:
    """One run as an onlooker sees it.

    Args:
        path: its mapping.

    Raises:
        ShmError: no mapping of this version there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shared = open_shared(path, read_only=True)
        run = np.zeros((), RUN)
        if not self._shared["run"].latest(run):
            raise ShmError(f"{path}: the run has only just begun; try again")
        self._run = run
        self._status = Statuses(self._shared)
        self._robot: RobotConfig = load_robot(_text(run["robot"]))
        self._policies = _text(run["policies"]).split(",")
        self._row = np.zeros((), self._shared["record"].dtype)
        self._seen = 0
        self._mask = 0
        self._late_us: deque[float] = deque(maxlen=TIMED_ROWS)
        self._tick_us: deque[float] = deque(maxlen=TIMED_ROWS)
        self._age_ms: deque[float] = deque(maxlen=TIMED_ROWS)
        self._events: dict[str, tuple[int, int]] = {}
        self._counted = (0, 0)

    def look(self) -> dict[str, Any]:
        """Everything at this moment, as plain data; None where a number is unknown."""
        now = time.monotonic_ns()
        self._status.read()
        self._read_rows()
        return {
            "run": self._describe(),
            "state": self._describe_state(),
            "events": [
                {"event": name, "age_s": round((now - ns) / 1e9, 1), "times": times}
                for name, (ns, times) in list(self._events.items())[-EVENTS_KEPT:]
            ],
            "timing": self._describe_timing(),
            "link": self._describe_link(now),
            "battery_percent": self._describe_battery(),
            "joints": self._describe_joints(),
            "processes": self._describe_processes(now),
        }

    def close(self) -> None:
        """Unmap."""
        self._shared.close()

    def _read_rows(self) -> None:
        """Follow the record ring from where it was left, at most as far back as it reaches."""
        ring = self._shared["record"]
        head = ring.head
        for number in range(max(self._seen + 1, head - ring.slots + 2), head + 1):
            if not ring.read(number, self._row):
                continue
            row = self._row
            self._late_us.append(float(row["wake_late_ns"]) / 1e3)
            self._tick_us.append(float(row["stage_ns"].sum()) / 1e3)
            self._age_ms.append(float(row["state_age_s"]) * 1e3)
            mask = int(row["safety_events"])
            for name in names(mask & ~self._mask):
                times = self._events.pop(name, (0, 0))[1] + 1
                self._events[name] = int(row["made_ns"]), times  # the newest comes last
            self._mask = mask
        self._seen = head

    def _describe(self) -> dict[str, Any]:
        run = self._run
        return {
            "pid": int(self.path.name.split("-")[1]),
            "robot": self._robot.name,
            "policies": self._policies,
            "interface": _text(run["interface"]),
            "domain": int(run["domain"]),
            "dry": bool(run["dry"]),
        }

    def _describe_state(self) -> dict[str, Any]:
        control, row = self._status.control, self._row
        index = int(row["policy"]) if self._seen else -1
        return {
            "mode": Mode(int(control["mode"])).name.lower(),
            "reason": _text(control["reason"]),
            "tier": Tier(int(control["tier"])).name.lower(),
            "active_events": names(int(control["events"])),
            "events_seen": names(int(control["events_seen"])),
            "policy": self._policies[index] if 0 <= index < len(self._policies) else None,
            "arm": Arm(int(row["arm"])).name.lower(),
            "episode": int(row["episode"]),
            "step": int(row["step"]),
            "velocity": [round(float(value), 3) for value in control["velocity"]],
        }

    def _describe_timing(self) -> dict[str, Any]:
        return {
            "period_ms": int(self._run["period_ns"]) / 1e6,
            "tick_us": _spread(self._tick_us),
            "wake_late_us": _spread(self._late_us),
            "state_age_ms": _spread(self._age_ms),
            "skipped_ticks": int(self._status.control["skipped_ticks"]),
        }

    def _describe_link(self, now: int) -> dict[str, Any]:
        """Of LowState at its full rate, as the recorder counts it; the rate since the last look."""
        recorder = self._status.recorder
        received = int(recorder["received"])
        before, then = self._counted
        self._counted = received, now
        rate = (received - before) * 1e9 / (now - then) if then else None
        counts = {name: int(recorder[name]) for name in ("gaps", "reordered", "duplicates", "crc_errors")}
        lost = 100 * counts["gaps"] / max(received + counts["gaps"], 1)
        return {
            "received": received,
            "rate_hz": None if rate is None else round(rate, 1),
            "lost_percent": round(lost, 3),
            **counts,
        }

    def _describe_battery(self) -> int | None:
        """Its charge; None where nobody publishes it."""
        recorder = self._status.recorder
        charge = int(recorder["battery"])
        return charge if recorder["heartbeat_ns"] and charge >= 0 else None

    def _describe_joints(self) -> dict[str, Any]:
        robot, row = self._robot, self._row
        if not self._seen:
            return {}
        margin = np.where(robot.valid, np.minimum(row["q"] - robot.lower, robot.upper - row["q"]), np.inf)
        heat = row["motor_temperature"]
        share = np.abs(row["tau_est"]) / robot.effort
        return {
            "nearest_limit_rad": self._first(margin, margin),
            "hottest_casing_c": self._first(-heat[:, 0], heat[:, 0]),
            "hottest_winding_c": self._first(-heat[:, 1], heat[:, 1]),
            "highest_torque_share": self._first(-share, share),
            "motor_faults": {
                name: int(bits)
                for name, bits in zip(robot.joint_names, row["motor_fault"], strict=True)
                if bits
            },
        }

    def _first(self, order: np.ndarray, values: np.ndarray) -> dict[str, float]:
        """Values of the joints that come first in an order."""
        slots = [int(slot) for slot in np.argsort(order, kind="stable") if self._robot.valid[slot]]
        return {self._robot.joint_names[slot]: round(float(values[slot]), 3) for slot in slots[:JOINTS_SHOWN]}

    def _describe_processes(self, now: int) -> dict[str, Any]:
        status = self._status
        control, gateway, recorder = status.control, status.gateway, status.recorder
        return {
            "control": {**_alive(control, now), "rights": _text(control["rights"])},
            "gateway": {
                **_alive(gateway, now),
                "state": GatewayState(int(gateway["state"])).name.lower(),
                "reason": Reason(int(gateway["reason"])).name.lower(),
                "published": int(gateway["published"]),
                "foreign": int(gateway["foreign"]),
                "rights": _text(gateway["rights"]),
            },
            "recorder": {
                **_alive(recorder, now),
                **{name: int(recorder[name]) for name in ("rows", "lost", "behind", "disk_free")},
                "full": bool(recorder["full"]),
            },
        }


def _alive(status: np.ndarray, now: int) -> dict[str, Any]:
    """Age of a heartbeat, None before the first."""
    beat = int(status["heartbeat_ns"])
    return {"heartbeat_ms": round((now - beat) / 1e6, 1) if beat else None}


def _spread(values: deque[float]) -> dict[str, float] | None:
    if not values:
        return None
    median, tail = np.percentile(np.array(values), (50, 99))
    return {"p50": round(float(median), 1), "p99": round(float(tail), 1), "max": round(max(values), 1)}


def _text(value: np.ndarray) -> str:
    text: bytes = value.item()
    return text.decode(errors="replace")

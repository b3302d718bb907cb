"""A window on a replay: the simulated robot, at the pace of the recording."""

import os
import time
from types import TracebackType
from typing import Any

from onboard.configs.errors import LinkError
from onboard.sim.physics import Physics


class Window:
    """Shows one replay after the other, each in a window of its own; a context manager.

    Args:
        period_s: of the recording.

    Raises:
        LinkError: no display.
    """

    def __init__(self, period_s: float) -> None:
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            # Without one the window library ends the whole process.
            raise LinkError("--view needs a display, and there is none here; leave it out")
        self._period_s = period_s
        self._shown: Physics | None = None
        self._viewer: Any = None
        self._due_s = 0.0

    def __enter__(self) -> "Window":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __call__(self, physics: Physics) -> None:
        """Show a robot; waits until its time has come. A closed window lets the rest run through.

        Raises:
            LinkError: the window can't be opened.
        """
        if physics is not self._shown:
            self._open(physics)
        if not self._viewer.is_running():
            return
        self._viewer.sync()
        self._due_s += self._period_s
        time.sleep(max(0.0, self._due_s - time.monotonic()))

    def _open(self, physics: Physics) -> None:
        self._close()
        try:
            import mujoco.viewer  # only on demand: it loads a window library

            self._viewer = mujoco.viewer.launch_passive(physics.model.mj, physics.data)
        except (ImportError, RuntimeError, OSError) as error:
            raise LinkError(f"--view can't open a window ({error}); leave it out") from error
        self._shown, self._due_s = physics, time.monotonic()

    def _close(self) -> None:
        if self._viewer is not None:
            self._viewer.close()

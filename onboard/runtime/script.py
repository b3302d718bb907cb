"""Plays an operator script: a pure state machine over (time, mode of the control loop)."""

from onboard.configs.script import ScriptConfig, Step


class Script:
    """Walks through the steps of a script.

    Attributes:
        pressed: actions to press now, as the last `advance` found them.
        velocity: (vx, vy, wz) in force, None before the first step that sets one.
        done: the last step is over.
        failure: why the script gave up, "" while it has not.
    """

    def __init__(self, config: ScriptConfig) -> None:
        self._steps = config.steps
        self._index = -1
        self._entered_ns = 0
        self._reached_ns: int | None = None
        self.pressed: list[str] = []
        self.velocity: tuple[float, float, float] | None = None
        self.done = False
        self.failure = ""

    def advance(self, now_ns: int, mode: str) -> None:
        """Go on as far as time and mode allow; at most one step that presses a button a call."""
        self.pressed = []
        while not (self.done or self.failure):
            if self._index >= 0 and not self._over(self._steps[self._index], now_ns, mode):
                return
            self._index += 1
            if self._index == len(self._steps):
                self.done = True
                return
            self._enter(self._steps[self._index], now_ns)
            if self.pressed:
                return

    def _enter(self, step: Step, now_ns: int) -> None:
        self._entered_ns, self._reached_ns = now_ns, None
        if step.press is not None:
            self.pressed = [step.press]
        if step.velocity is not None:
            vx, vy, wz = step.velocity
            self.velocity = (vx, vy, wz)

    def _over(self, step: Step, now_ns: int, mode: str) -> bool:
        if self._reached_ns is None:
            if step.until is not None and mode != step.until:
                if now_ns - self._entered_ns > step.timeout_s * 1e9:
                    self.failure = (
                        f"script step {self._index + 1}: mode '{step.until}' was not reached within "
                        f"{step.timeout_s:g} s, the mode is '{mode}'"
                    )
                return False
            self._reached_ns = now_ns
        return now_ns - self._reached_ns >= step.for_s * 1e9

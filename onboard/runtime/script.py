"""Plays an operator script: a pure state machine over (time, mode of the control loop)."""

from onboard.configs.script import ScriptConfig, Step

_RANK = {"limp": 0, "damp": 0, "ramp": 1, "hold": 2, "policy": 3}


class Script:
    """Walks through the steps of a script.

    Attributes:
        pressed: actions to press now, as the last `advance` found them.
        velocity: (vx, vy, wz) in force, None before the first step that sets one.
        policy: index to switch to now, None otherwise.
        done: the last step is over.
        failure: why the script gave up, "" while it has not.
    """

    def __init__(self, config: ScriptConfig) -> None:
        self._steps = config.steps
        self._highest = 0
        self._index = -1
        self._entered_ns = 0
        self._reached_ns: int | None = None
        self.pressed: list[str] = []
        self.policy: int | None = None
        self.velocity: tuple[float, float, float] | None = None
        self.done = False
        self.failure = ""

    def advance(self, now_ns: int, mode: str) -> None:
        """Go on as far as time and mode allow; at most one step that presses a button a call."""
        self.pressed, self.policy = [], None
        self._notice_fall(mode)
        while not (self.done or self.failure):
            if self._index >= 0 and not self._over(self._steps[self._index], now_ns, mode):
                return
            self._index += 1
            if self._index == len(self._steps):
                self.done = True
                return
            self._enter(self._steps[self._index], now_ns)
            if self.pressed or self.policy is not None:
                return

    def _notice_fall(self, mode: str) -> None:
        """A mode below one reached before ends the script, unless the step waits for just that."""
        rank = _RANK[mode]
        expected = 0 <= self._index < len(self._steps) and self._steps[self._index].until == mode
        if rank < self._highest and not expected and not self.done:
            self.failure = self.failure or f"the mode fell to {mode} in script step {self._index + 1}"
        self._highest = rank if expected else max(self._highest, rank)

    def _enter(self, step: Step, now_ns: int) -> None:
        self._entered_ns, self._reached_ns = now_ns, None
        if step.press is not None:
            self.pressed = [step.press]
        self.policy = step.policy
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

"""One delta for each contact phase, chosen by which feet stand on the ground."""

from onboard.policies.residual.contract import Phase
from onboard.policies.residual.delta import Delta, Float32Array, Question

PHASES: dict[tuple[int, int], Phase] = {
    (0, 0): "flight",
    (1, 0): "left",
    (0, 1): "right",
    (1, 1): "both",
}


class ByContact:
    """All parts see every tick, so that their histories are whole when their phase begins.

    Args:
        parts: by phase, all four.
    """

    def __init__(self, parts: dict[str, Delta]) -> None:
        self._parts = parts
        self._every = list(parts.values())
        self._active: Delta | None = None

    @property
    def known(self) -> bool:
        """The contact of both feet is known."""
        return self._active is not None

    @property
    def settled(self) -> bool:
        """Of the part whose phase it is."""
        return self._active is None or self._active.settled

    def reset(self) -> None:
        """Forget what was remembered, in every part."""
        self._active = None
        for part in self._every:
            part.reset()

    def look(self, question: Question) -> None:
        """Take one tick in and choose the part."""
        left, right = question.asked.contact.tolist()
        phase = PHASES.get((left, right))
        self._active = None if phase is None else self._parts[phase]
        for part in self._every:
            part.look(question)

    def correction(self) -> Float32Array:
        """(n,) rad, by the part of this phase."""
        if self._active is None:
            raise ValueError("the contact phase is not known")
        return self._active.correction()

    def remember(self, applied: Float32Array) -> None:
        """The tick counted, in every part."""
        for part in self._every:
            part.remember(applied)

    def warm(self) -> None:
        """Go through every part once."""
        for part in self._every:
            part.warm()

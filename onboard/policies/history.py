"""Memory of past frames, laid out so that any run of ticks is one contiguous view."""

import numpy as np
from numpy.typing import NDArray

Float32Array = NDArray[np.float32]


class FrameWindow:
    """The newest `depth` frames of one graph.

    A ring in which every frame is stored twice, `depth` rows apart: wherever the newest one stands,
    the `depth` rows up to it are a contiguous view, oldest first, and nothing is ever shifted.

    Attributes:
        depth, width: frames kept (the present one included) and numbers per frame.
    """

    def __init__(self, depth: int, width: int) -> None:
        self.depth = depth
        self.width = width
        self._rows: Float32Array = np.zeros((2 * depth, width), np.float32)
        self._presents: list[Float32Array] = [self._rows[head + depth] for head in range(depth)]
        self._mirrors: list[Float32Array] = [self._rows[head] for head in range(depth)]
        self._views: list[Float32Array] = [
            self._rows[head + 1 : head + 1 + depth].reshape(-1) for head in range(depth)
        ]
        self._head = 0

    @property
    def present(self) -> Float32Array:
        """(width,) row of the present tick; written anew every tick until `advance` keeps it."""
        return self._presents[self._head]

    @property
    def flat(self) -> Float32Array:
        """(depth·width,) view of all frames, the present one last."""
        return self._views[self._head]

    def index(self, age: int, column: int) -> int:
        """Position in `flat` of one column of the frame that is `age` ticks old."""
        return (self.depth - 1 - age) * self.width + column

    def advance(self) -> None:
        """Keep the present frame; the next tick writes another row."""
        self._mirrors[self._head][:] = self._presents[self._head]
        self._head = (self._head + 1) % self.depth

    def clear(self) -> None:
        """Forget everything: all zeros."""
        self._rows[:] = 0.0
        self._head = 0

    def repeat_present(self, columns: NDArray[np.bool_]) -> None:
        """Write the present frame over all earlier ones, in the columns given."""
        np.copyto(self._rows, self.present.copy(), where=columns)

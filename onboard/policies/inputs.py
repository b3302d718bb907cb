"""The input half of a contract: which terms a network reads, how they are scaled, laid out and remembered."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

Pair = tuple[float, float]
Positive = Annotated[float, Meta(gt=0)]
Names = Annotated[tuple[str, ...], Meta(min_length=1)]


class Term(Struct, frozen=True, forbid_unknown_fields=True):
    """One quantity of an observation.

    Attributes:
        term: its name in the catalogue (`onboard.policies.terms`).
        scale: one factor, or one per element. A factor of 0 blanks an element.
        clip: bounds, None for none.
        clip_first: the clip comes before the scale (Isaac Lab's order) instead of after it.
        joints: for joint terms: which joints and in which order; None for the contract's
            `observed_joints`.
        values: for `constant`: the numbers.
        source: for `graph_output`: `graph.output`. For `constant`: a name in the contract's `constants`,
            instead of values. For `last_action`: another graph than the term's own.
        ahead: for terms of the reference motion: how many ticks ahead of the present.
    """

    term: str
    scale: float | tuple[float, ...] = 1.0
    clip: Pair | None = None
    clip_first: bool = True
    joints: Names | None = None
    values: tuple[float, ...] = ()
    source: str = ""
    ahead: Annotated[int, Meta(ge=0, le=1000)] = 0

    def __post_init__(self) -> None:
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        if not all(map(math.isfinite, (*scales, *self.values))):
            raise ValueError(f"term '{self.term}': a number is not finite")
        if self.clip is not None and not self.clip[0] <= self.clip[1]:
            raise ValueError(f"term '{self.term}': clip {list(self.clip)} is not [lower, upper]")


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """A stretch of an input: some terms, over some frames.

    A block of one current frame is its terms, one after the other. Any other states its layout in
    full; nothing is assumed, because families differ in every one of these.

    Attributes:
        terms: in order.
        steps: ages of the frames in ticks, in order, where they are not one after the other; instead of
            `frames`, `order` and `current`.
        frames: how many ticks.
        layout: `term_major` (all frames of a term, then the next term) or `frame_major`.
        order: of the frames.
        current: the present tick is one of the frames; else the newest is the tick before.
        fill: what stands for ticks before the reset: `zeros` (of scaled values) or the
            `first_frame` after it.
    """

    terms: Annotated[tuple[Term, ...], Meta(min_length=1)]
    frames: Annotated[int, Meta(ge=1, le=1000)] = 1
    layout: Literal["term_major", "frame_major"] | None = None
    order: Literal["oldest_first", "newest_first"] | None = None
    current: bool | None = None
    fill: Literal["zeros", "first_frame"] | None = None
    steps: tuple[Annotated[int, Meta(ge=0, le=1000)], ...] = ()

    def __post_init__(self) -> None:
        if self.steps:
            self._check_steps()
            return
        if self.frames == 1 and self.current is not False:
            return
        missing = [key for key in ("layout", "order", "current", "fill") if getattr(self, key) is None]
        if missing:
            raise ValueError(f"a block of {self.frames} frames must also say: {', '.join(missing)}")

    def _check_steps(self) -> None:
        if self.frames != 1 or self.order is not None or self.current is not None:
            raise ValueError("a block with steps says neither frames nor order nor current")
        if len(set(self.steps)) != len(self.steps):
            raise ValueError(f"steps {list(self.steps)}: one stands twice")
        missing = [key for key in ("layout", "fill") if getattr(self, key) is None]
        if missing:
            raise ValueError(f"a block with steps must also say: {', '.join(missing)}")

    @property
    def ages(self) -> tuple[int, ...]:
        """Age of each frame in ticks, 0 for the present one, in the order of the block."""
        if self.steps:
            return self.steps
        newest = 1 if self.current is False else 0
        ages = range(newest, newest + self.frames)
        return tuple(reversed(ages)) if self.order == "oldest_first" else tuple(ages)


class Normaliser(Struct, frozen=True, forbid_unknown_fields=True):
    """Statistics that are not in the graph: `(x - mean) / (deviation + epsilon)`, then `± clip`.

    Attributes:
        mean, deviation: one number per element of the input; from the file where there is one.
        epsilon: never assumed; from the file where it states one.
        clip: bound of the normalised values.
        file: npz that holds the numbers, relative to the contract's folder.
    """

    mean: Annotated[tuple[float, ...], Meta(min_length=1)]
    deviation: Annotated[tuple[float, ...], Meta(min_length=1)]
    epsilon: Annotated[float, Meta(ge=0)]
    clip: Positive | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.deviation):
            raise ValueError(f"{len(self.mean)} means, {len(self.deviation)} deviations")
        if not all(map(math.isfinite, self.mean + self.deviation)):
            raise ValueError("a mean or deviation is not finite")
        if min(self.deviation) + self.epsilon <= 0:
            raise ValueError("a deviation is not positive")


class Input(Struct, frozen=True, forbid_unknown_fields=True):
    """One ONNX input.

    Attributes:
        blocks: what it is made of, for `terms`.
        carries: `terms`, the `motion_index` (frame of the reference motion), or `first_tick` (1 in
            the first tick after a reset, then 0).
        clip: bounds of the assembled input, None for none.
        normaliser: applied to the assembled input before the clip.
    """

    blocks: tuple[Block, ...] = ()
    carries: Literal["terms", "motion_index", "first_tick"] = "terms"
    clip: Pair | None = None
    normaliser: Normaliser | None = None

    def __post_init__(self) -> None:
        if (self.carries == "terms") != bool(self.blocks):
            raise ValueError(f"an input that carries {self.carries} has {len(self.blocks)} blocks")

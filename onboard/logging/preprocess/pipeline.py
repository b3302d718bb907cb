"""Chains preprocessing steps and writes down what each of them did.

A *track* is an unbroken stretch of a rollout: columns by name, all of n rows. A *step* takes a track and
returns a new one with facts about what it did; it changes nothing in place. Every step stands alone and
is optional:

```python
track, done = run(track, [Step(align), Step(reject_outliers, {"sigma": 4.0}), Step(label_contact)])
```
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Track = dict[str, np.ndarray]
Facts = dict[str, Any]

COMMAND_COLUMNS = (
    "target",
    "action_sent",
    "action_policy",
    "action_residual",
    "action_combined",
    "kp",
    "kd",
    "kp_scale",
    "command",
)
"""Columns that lie on the control grid; everything else that is measured lies on the robot's clock."""


@dataclass(frozen=True)
class Step:
    """A preprocessing function and its options."""

    function: Callable[..., tuple[Track, Facts]]
    options: Mapping[str, Any] = field(default_factory=dict)


def run(track: Track, steps: Sequence[Step]) -> tuple[Track, list[Facts]]:
    """Apply steps in order.

    Returns:
        The last track, and for every step its name, its options and its facts, as plain data for JSON.
    """
    done = []
    for step in steps:
        track, facts = step.function(track, **step.options)
        done.append({"step": step.function.__name__, "options": dict(step.options), **facts})
    return track, done


def rows_of(track: Track) -> int:
    """Length of every column."""
    return len(track["time_s"])

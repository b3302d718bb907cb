"""Fingerprints of single terms: which way gravity points, how fast things move, how histories lie."""

import numpy as np

from onboard.policies.fingerprint.view import Seen, TrainedView

DOWN = 0.85
"""Policies that stand have a mean of -0.97 to -1.0 in gravity's z."""

SIDEWAYS = 0.3
OVER_ONE = 1.1
UPRIGHT_ANCHOR = 0.7
"""A tracking policy's anchor is near its reference: means of 0.99 on the diagonal of the rotation."""

SPEEDS = {"gyro": (0.25, 4.0), "joint_vel": (0.3, 10.0)}
"""Deviations in training, rad/s: published policies have 0.5 to 1.7 of the gyro, 1.1 to 2.5 of joints."""

BLANK = 0.05
AGE_SPREAD = 0.15
"""Frames of one term differ in age alone, so their deviations are alike; logarithm of their ratio."""


def gravity(view: TrainedView) -> list[str]:
    """Gravity's z has a mean of about -1."""
    seen = view.newest("gravity")
    if seen is None or np.isnan(seen.raw_mean).any():
        return []
    x, y, z = seen.raw_mean
    if z < -DOWN and max(abs(x), abs(y)) < SIDEWAYS:
        return []
    if z > DOWN:
        return [f"gravity: its z has a mean of {z:+.2f} in training, expected about -1: the sign is wrong"]
    slot = seen.placed.start + 2
    elsewhere = [str(index) for index in _like_gravity(view) if index != slot]
    hint = f"; element {' and '.join(elsewhere[:3])} looks like it" if elsewhere else ""
    return [
        f"gravity: by this contract its z is element {slot}, whose mean in training is {z:+.2f}, not about "
        f"-1{hint}: the order of the terms, a width before it, or the history layout is wrong"
    ]


def anchor(view: TrainedView) -> list[str]:
    """The reference's rotation seen from the robot is near to none."""
    seen = view.newest("anchor_orientation")
    if seen is None or np.isnan(seen.raw_mean).any():
        return []
    by_rows, by_columns = seen.raw_mean[[0, 3]].min(), seen.raw_mean[[0, 4]].min()
    if by_rows > UPRIGHT_ANCHOR:
        return []
    if by_columns > UPRIGHT_ANCHOR:
        return [
            "anchor_orientation: in training its elements 0 and 4 were near 1, not 0 and 3: this policy has "
            "the two columns one after the other (or the first two rows), not row by row"
        ]
    return [
        f"anchor_orientation: element {seen.placed.start} has a mean of {seen.raw_mean[0]:+.2f} in training, "
        "expected about 1: the order of the terms is wrong, or another body is the anchor"
    ]


def history(view: TrainedView) -> list[str]:
    """All frames of a term have the same deviation."""
    groups: dict[tuple[int, int], list[Seen]] = {}
    for seen in view.seen:
        groups.setdefault(seen.placed.place, []).append(seen)
    rows = [
        np.log([seen.deviation + 1e-6 for seen in frames]) for frames in groups.values() if len(frames) > 1
    ]
    if not rows:
        return []
    spread = float(np.concatenate([np.ptp(row, axis=0) for row in rows]).mean())
    if spread < AGE_SPREAD:
        return []
    return [
        f"history: frames of one and the same element differ by a factor of {np.exp(spread):.1f} in their "
        "deviation in training, where only their age should differ: term-major and frame-major are mixed up, "
        "or the number of frames or the order of the terms is wrong"
    ]


def speeds(view: TrainedView) -> list[str]:
    """Nothing moves much slower or faster than robots do."""
    findings = []
    for term, (slow, fast) in SPEEDS.items():
        seen = view.newest(term)
        if seen is None or not np.isfinite(seen.raw_deviation).any():
            continue
        deviation = float(np.nanmedian(seen.raw_deviation))
        if not slow < deviation < fast:
            factor = float(np.median(seen.scale))
            findings.append(
                f"{term}: with its scale of {factor:g}, its deviation in training was {deviation:.2g} rad/s, "
                f"expected {slow:g} to {fast:g}: the scale is wrong, or the order of the terms"
            )
    return findings


def blanks(view: TrainedView) -> list[str]:
    """What a scale of 0 blanks was constant in training too."""
    findings = []
    for seen in view.seen:
        alive = (seen.scale == 0.0) & (seen.deviation > BLANK)
        if alive.any():
            findings.append(
                f"{seen.placed.term.term}: blanked by a scale of 0, but {int(alive.sum())} of its elements "
                "varied in training: it must be given"
            )
    return list(dict.fromkeys(findings))


def _like_gravity(view: TrainedView) -> list[int]:
    """Elements that are near -1 and hardly move, with two before them about 0."""
    mean, deviation = view.statistics.mean, view.statistics.deviation
    return [
        index
        for index in range(2, len(mean))
        if mean[index] < -DOWN
        and mean[index] > -OVER_ONE
        and deviation[index] < 0.3
        and np.abs(mean[index - 2 : index]).max() < SIDEWAYS
    ]

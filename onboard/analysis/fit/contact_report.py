"""What a fit by contact phase says: figures, warnings, one line."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from onboard.analysis.fit.by_contact import PhaseFit
from onboard.analysis.fit.fit import Explained
from onboard.analysis.fit.network import NetworkFit
from onboard.analysis.fit.report import (
    EQUAL,
    KindReport,
    data_warnings,
    kind_report,
    network_figures,
    simulator,
    warnings,
)
from onboard.configs.robot import RobotConfig
from onboard.policies.residual.contract import Phase

Which = Literal["one", "by_contact", "network"]
Networks = Mapping[Phase, NetworkFit]


class ContactReport(Struct, frozen=True):
    """A fit by contact.

    Attributes:
        logs, heldout_logs: sha256 by file name; the same file in both was split in time.
        simulators: by phase.
        explanations: `one` delta for all phases, `by_contact`, and `network` where it was fitted; each by
            phase, with the errors on that phase's data.
        overall: of each of them, the RMS over phases that weigh the same.
        rows: fitted and held-out rows by phase.
        warnings: one sentence each.
    """

    logs: dict[str, str]
    heldout_logs: dict[str, str]
    simulators: dict[str, str]
    explanations: dict[str, dict[str, KindReport]]
    overall: dict[str, dict[str, float]]
    rows: dict[str, tuple[int, int]]
    warnings: list[str]


def contact_report(fits: Sequence[PhaseFit], robot: RobotConfig, networks: Networks) -> ContactReport:
    """The figures of a fit; `networks` by phase where they were fitted."""
    explanations: dict[str, dict[str, KindReport]] = {
        "one": {each.phase: kind_report(each.fit, each.one, robot) for each in fits},
        "by_contact": {each.phase: kind_report(each.fit, each.own, robot) for each in fits},
    }
    if networks:
        explanations["network"] = {
            each.phase: network_figures(each.fit, networks[each.phase], robot) for each in fits
        }
    overall = {which: _overall(phases.values()) for which, phases in explanations.items()}
    return ContactReport(
        logs=_merged(each.fit.data.files for each in fits),
        heldout_logs=_merged(each.fit.data.held_out_files for each in fits),
        simulators={each.phase: simulator(each.fit) for each in fits},
        explanations=explanations,
        overall=overall,
        rows={each.phase: (_rows(each.own, "fitted"), _rows(each.own, "held_out")) for each in fits},
        warnings=[*_phase_warnings(fits, robot), *_overall_warnings(overall)],
    )


def contact_headline(which: str, overall: Mapping[str, float], latency_s: float) -> str:
    """The fit in one line."""
    return (
        f"{which}: tracking error, simulator against robot, over the phases: {overall['before_deg']:.2f} -> "
        f"{overall['after_deg']:.2f} deg RMS fitted, {overall['heldout_before_deg']:.2f} -> "
        f"{overall['heldout_after_deg']:.2f} deg held out; latency {latency_s * 1e3:.1f} ms"
    )


def _overall(phases: Iterable[KindReport]) -> dict[str, float]:
    """RMS over phases that weigh the same, however many rows they have."""
    every = list(phases)
    sides = ("before_deg", "after_deg", "heldout_before_deg", "heldout_after_deg")
    return {side: float(np.sqrt(np.mean([getattr(each, side) ** 2 for each in every]))) for side in sides}


def _merged(every: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {name: digest for files in every for name, digest in files.items()}


def _rows(explained: Explained, side: Literal["fitted", "held_out"]) -> int:
    return int(np.isfinite(getattr(explained, side).before[..., 0]).sum())


def _phase_warnings(fits: Sequence[PhaseFit], robot: RobotConfig) -> list[str]:
    found = []
    for each in fits:
        own = [text.removeprefix("linear: ") for text in warnings(each.fit, each.own, robot)]
        if each.phase == "flight":
            own = [*data_warnings(each.fit, robot), *own]
        found += [f"phase {each.phase}: {text}" for text in own]
    return found


def _overall_warnings(overall: Mapping[str, Mapping[str, float]]) -> list[str]:
    after = {which: errors["heldout_after_deg"] for which, errors in overall.items()}
    found = []
    if after["by_contact"] > (1 - EQUAL) * after["one"]:
        found.append(
            "a delta for each phase describes the held-out data no better than one for all of them "
            f"({after['by_contact']:.3f} against {after['one']:.3f} deg): use the one"
        )
    if after.get("network", 0.0) >= after["by_contact"]:
        found.append("the networks describe the held-out data no better than linear deltas: use those")
    return found

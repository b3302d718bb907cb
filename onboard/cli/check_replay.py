"""The part of `onboard check` that holds an earlier rollout against this computer and this policy."""

import json
from pathlib import Path

from onboard.analysis.replay import Difference, Parity, replay
from onboard.logging.rollout import Rollout
from onboard.policies.policy import Policy
from onboard.runtime.assembly import Plan
from onboard.runtime.preflight.report import Check, Finding, judged


class ReplayChecks:
    """Rebuilds the observations of a rollout and lets the policy answer them again.

    Args:
        file: rollout of an earlier run of the same policy.
        plan: of the run that is to come.
    """

    def __init__(self, file: Path, plan: Plan) -> None:
        self._file = file
        self._plan = plan
        self._parity: tuple[Parity, str] | None = None

    def checks(self) -> list[Check]:
        """In the order in which they are made."""
        return [
            Check("replay", "observations", lambda: self._judge("observations", self._replayed()[0].obs)),
            Check("replay", "actions", lambda: self._judge("actions", self._replayed()[0].action)),
        ]

    def _replayed(self) -> tuple[Parity, str]:
        """Parity of the rollout's first policy, and a note about files that are not the same.

        Raises:
            RolloutError: unreadable, or another policy's.
        """
        if self._parity is None:
            bundle = self._plan.bundle
            with Rollout(self._file) as rollout:
                parity = replay(rollout, 0, Policy(bundle, self._plan.robot))
                logged = json.loads(str(rollout.attributes["models_sha256"]))[0]
            now = {Path(path).name: digest for path, digest in bundle.model_paths.items()}
            changed = sorted(name for name, digest in logged.items() if now.get(name, digest) != digest)
            self._parity = parity, f"; not the file that was run: {', '.join(changed)}" if changed else ""
        return self._parity

    def _judge(self, what: str, difference: Difference) -> Finding:
        parity, note = self._replayed()
        machine = "here" if parity.same_machine else "on another machine, or with other versions"
        exact = difference.largest == 0
        found = (
            "equal bit by bit" if exact else f"differ by up to {difference.largest:.2g} ({difference.where})"
        )
        return judged(
            f"{what} of {parity.rows} rows, recorded {machine}: {found}{note}" if parity.rows else "no rows",
            warn=False,
            fail=not parity.rows or bool(difference.rows),
            advice="another policy file, contract or library than was run: do not expect the same behaviour",
            values={"largest": difference.largest, "rows": parity.rows},
        )

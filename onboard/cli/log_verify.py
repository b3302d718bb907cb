"""`onboard log verify`: is a rollout what it claims to be, and does its policy still say the same."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from onboard.analysis.replay import replay
from onboard.cli.logged_policies import changed_models, logged_config, logged_policies
from onboard.cli.options import parse, write_json
from onboard.configs.errors import OnboardError
from onboard.logging.rollout import Rollout
from onboard.logging.verify import Check, Verdict, verify

EXIT_DAMAGED = 1
EXIT_WITH_LOSS = 3
_SIGNS = {Verdict.OK: "ok", Verdict.LOSS: "LOSS", Verdict.BAD: "BAD", Verdict.UNKNOWN: "-"}


@dataclass(frozen=True)
class VerifyArgs:
    """Check rollouts: checksum, completeness, clocks, gaps, hashes of the models, replay of the policy.

    Exit code 0: every file is whole; 1: at least one is damaged or contradicts itself, or its policy says
    something else now; 3: all are sound, but at least one misses rows, and says so. What can't be told here,
    because the policy is not installed, counts as neither.

    Example: onboard log verify rollouts/*.h5
    """

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Rollouts (.h5) or leftover journals."""
    replay: bool = True
    """Run the policies again; without it files are read, nothing else."""
    json: str = ""
    """Write every check of each file as JSON there; `-` is standard output."""


def run(argv: list[str]) -> int:
    """Run the verb."""
    args = parse(VerifyArgs, "log verify", VerifyArgs.__doc__ or "", argv)
    found = {str(path): examine(path, again=args.replay) for path in args.files}
    if args.json:
        rows = {name: [_plain(check) for check in checks] for name, checks in found.items()}
        write_json(args.json, {"files": rows})
    if args.json != "-":
        sys.stdout.write(
            "".join(_block(name, checks) for name, checks in found.items()) or "no files given\n"
        )
    return exit_code(found)


def examine(path: Path, *, again: bool) -> list[Check]:
    """Every check of one file. `again`: run its policies again too."""
    checks = verify(path)
    if any(check.verdict is Verdict.BAD for check in checks):
        return checks  # what a broken file says about its policy is worth nothing
    with Rollout(path, check=False) as rollout:
        try:
            config = logged_config(rollout)
            policies = logged_policies(rollout, config)
        except OnboardError as error:
            return [*checks, Check("models", Verdict.UNKNOWN, f"not checked: {error}")]
        for index, policy in policies.items():
            name = rollout.policies[index].name
            changed = changed_models(rollout, index, policy, config)
            if changed:
                text = f"{name}: {', '.join(changed)} differs from the file that was run, or is not there"
                checks.append(Check("models", Verdict.BAD, text))
                continue
            checks.append(Check("models", Verdict.OK, f"{name}: every file is the one that was run"))
            if again and len(rollout.policies[index].rows):
                parity = replay(rollout, index, policy)
                verdict = Verdict.OK if parity.holds else Verdict.BAD if parity.rows else Verdict.UNKNOWN
                checks.append(Check("replay", verdict, parity.describe()))
    return checks


def exit_code(found: dict[str, list[Check]]) -> int:
    """The worst of all files; no files at all is an error too."""
    verdicts = {check.verdict for checks in found.values() for check in checks}
    if Verdict.BAD in verdicts or not verdicts:
        return EXIT_DAMAGED
    return EXIT_WITH_LOSS if Verdict.LOSS in verdicts else 0


def _block(name: str, checks: list[Check]) -> str:
    lines = [f"  {_SIGNS[check.verdict]:<5}{check.name}: {_without(check.text, name)}" for check in checks]
    return "\n".join([name, *lines]) + "\n"


def _without(text: str, name: str) -> str:
    """The file's name stands above already."""
    return text.removeprefix(f"{name}: ")


def _plain(check: Check) -> dict[str, str]:
    return {"check": check.name, "verdict": check.verdict.value, "text": check.text}

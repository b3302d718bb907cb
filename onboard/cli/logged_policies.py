"""The policies of a rollout, loaded again from where the run had them."""

import contextlib
import json
from pathlib import Path

from onboard.configs.errors import ConfigError, OnboardError, RolloutError
from onboard.configs.loader import convert, parse_yaml
from onboard.configs.run import PolicyChoice, RunConfig
from onboard.logging.rollout import Rollout
from onboard.policies.bundle import load_policy
from onboard.policies.policy import Policy
from onboard.policies.residual.files import load_residual


def logged_config(rollout: Rollout) -> RunConfig:
    """What the run was told.

    Raises:
        RolloutError: another version recorded it.
    """
    try:
        return convert(
            parse_yaml(rollout.config_text("run"), "run"), RunConfig, f"{rollout.path}: config run"
        )
    except ConfigError as error:
        raise RolloutError(f"{error}; another version recorded it, use that one") from error


def logged_policies(
    rollout: Rollout, config: RunConfig, policy: str = "", preset: str = ""
) -> dict[int, Policy]:
    """By index in the run; a bench run's excitation is nothing to run again.

    Args:
        rollout: of the run.
        config: from it.
        policy: another one in the place of the first.
        preset: of that.

    Raises:
        OnboardError: one of them can't be loaded here.
    """
    robot = rollout.robot
    if config.bench is not None and not policy:
        return {}
    choices = [PolicyChoice(config.policy, config.preset), *config.also]
    if policy:
        choices[0] = PolicyChoice(policy, preset)
    found = {}
    for index, choice in enumerate(choices[: len(rollout.policies)]):
        overrides = config.policy_overrides if index == 0 and not policy else ()
        bundle = load_policy(choice.policy, robot, choice.preset or None, overrides, config.provider or None)
        found[index] = Policy(bundle, robot)
    return found


def changed_models(rollout: Rollout, index: int, policy: Policy, config: RunConfig) -> list[str]:
    """Names of the model files whose sha256 differs from that of the run, or that are not there.

    Args:
        rollout: of the run.
        index: of the policy in it.
        policy: as it is now.
        config: of the run; its residual's models are looked at with the first policy.
    """
    logged = json.loads(str(rollout.attributes["models_sha256"]))[index]
    now = {Path(path).name: digest for path, digest in policy.bundle.model_paths.items()}
    if config.residual and index == 0:
        with contextlib.suppress(OnboardError):  # then its files count as not there
            overrides = config.residual_overrides
            now |= load_residual(
                config.residual, policy.bundle.robot, policy.bundle.contract, overrides
            ).sha256
    return sorted(name for name, digest in logged.items() if now.get(name) != digest)

"""Every error that the program raises on purpose.

```
OnboardError                 anything below; the command line prints it as one line
├── ConfigError              a configuration file or an override is wrong
├── PolicyError              a policy, its contract or its weights can't be used
├── LinkError                the robot can't be reached, or must not be commanded
├── SafetyRefusalError       a check before the start failed; nothing was sent
└── RolloutError             a rollout or journal can't be written or read
```

A message says what was found, where, what was expected and how to mend it.
"""


class OnboardError(Exception):
    """Root of the tree; `exit_code` is what the process ends with."""

    exit_code = 2


class ConfigError(OnboardError):
    """A configuration value is unknown, missing, of the wrong type or out of range."""


class PolicyError(OnboardError):
    """A policy bundle is incomplete, contradicts itself or does not fit the robot."""


class LinkError(OnboardError):
    """No robot was heard, the interface is unknown, or somebody else commands the robot."""


class SafetyRefusalError(OnboardError):
    """A condition for moving the robot does not hold."""


class RolloutError(OnboardError):
    """A rollout file or journal is unreadable, inconsistent or can't be written."""

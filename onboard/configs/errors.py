"""Every error that the program raises on purpose.

```
OnboardError                 anything below; the command line prints it as one line
├── ConfigError              a configuration file or an override is wrong
├── PolicyError              a policy, its contract or its weights can't be used
├── LinkError                the robot can't be reached, or must not be commanded
├── SafetyRefusalError       a check before the start failed; nothing was sent
└── RolloutError             a rollout or journal can't be written or read
```

A message says what was found, where, what was expected and how to mend it. It is one line that is safe
to print, whatever a file put into it.
"""

LONGEST_MESSAGE = 1000
"""Characters; of a longer message the middle is left out."""


class OnboardError(Exception):
    """Root of the tree; `exit_code` is what the process ends with."""

    exit_code = 2

    def __str__(self) -> str:
        return one_line(super().__str__())


def one_line(text: str) -> str:
    """Text as one printable line: line ends become spaces, control characters are spelled out."""
    line = " ".join(text.splitlines())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    half = LONGEST_MESSAGE // 2 - 3
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:half]} ... {line[-half:]}"


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

"""The `onboard` command with `benchmarks.faulty_control` as its control process."""

import sys

from onboard.cli.main import main
from onboard.runtime import parent

CONTROL_MODULE = "benchmarks.faulty_control"

if __name__ == "__main__":
    parent.CONTROL_MODULE = CONTROL_MODULE
    sys.exit(main())

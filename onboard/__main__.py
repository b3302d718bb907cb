"""Lets `python -m onboard` do what the `onboard` command does."""

import sys

from onboard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

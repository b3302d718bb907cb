"""Where the shared policies and golden vectors are, if they are."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared"


def shared_folder(*parts: str) -> Path:
    """Path below the shared folder; skips the test where it is absent, fails it where it is required."""
    root = Path(os.environ.get("ONBOARD_SHARED", _BESIDE))
    path = root.joinpath(*parts)
    if not path.exists():
        message = f"{path} is absent: put the shared folder beside the checkout or name it in ONBOARD_SHARED"
        if os.environ.get("ONBOARD_REQUIRE_SHARED"):
            pytest.fail(message)
        pytest.skip(message)
    return path

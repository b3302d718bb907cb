"""A picture into its file."""

from pathlib import Path

from matplotlib.figure import Figure

from onboard.configs.errors import RolloutError


def save_picture(figure: Figure, out: Path) -> Path:
    """Write a PNG; its path.

    Raises:
        RolloutError: it can't be written.
    """
    try:
        figure.savefig(out, format="png")
    except OSError as error:
        raise RolloutError(
            f"{out}: the plot can't be written ({error.strerror}); give --out FILE elsewhere"
        ) from error
    return out

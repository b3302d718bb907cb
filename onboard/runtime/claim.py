"""One run at a time on one robot: two of this machine's runs must never command it together.

The claim is a name in Linux' abstract socket namespace. It needs no file, ends with its process however
that dies, and is seen by every user of this machine. Other machines are heard by the gateway (design §10).
"""

import contextlib
import socket
from collections.abc import Iterator

from onboard.configs.errors import LinkError


@contextlib.contextmanager
def sole_run(domain: int, interface: str) -> Iterator[None]:
    """Be the only run of this machine that commands the robot of a DDS domain on an interface.

    Raises:
        LinkError: another run does already.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
        try:
            claim.bind(f"\0onboard-run-{domain}-{interface}")
        except OSError as error:
            raise LinkError(
                f"another run on this machine commands the robot of domain {domain} on {interface}; end it "
                "first (onboard status shows it), or give --dry to look on"
            ) from error
        yield

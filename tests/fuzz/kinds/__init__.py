"""Every kind of input that the package reads and nobody vouches for."""

from tests.fuzz.kinds import configs, logs, messages, motions, operator, policies
from tests.fuzz.kinds.kind import Kind

ROOMS = (configs, policies, motions, logs, messages, operator)

KINDS: dict[str, Kind] = {kind.name: kind for room in ROOMS for kind in room.KINDS}

"""One profile for every property test: the same cases each time, no limit of wall time on a busy machine."""

from hypothesis import settings

settings.register_profile("onboard", derandomize=True, deadline=None)
settings.load_profile("onboard")

"""Every tick on disk: record layout, journal, recorder process, rollout files and their reader."""

if __name__ == "logging":
    # Somebody runs Python inside the package's folder, so that this folder was found as the standard
    # library's `logging`. Step aside for the real one.
    import importlib
    import os
    import sys

    _here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _path = sys.path[:]
    sys.path[:] = [entry for entry in _path if os.path.abspath(entry or os.curdir) != _here]
    del sys.modules["logging"]
    importlib.invalidate_caches()
    sys.modules["logging"] = importlib.import_module("logging")
    sys.path[:] = _path

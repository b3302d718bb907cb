"""Checks before a run: what was measured, whether it will do, what to do where it will not."""

"""Onboard real-time runtime for trained policies on the Unitree G1."""

__version__ = "0.1.0"

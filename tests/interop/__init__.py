"""Peers that tests start in other interpreters: Python 3.10 with Cyclone 0.10.x, the vendor's SDKs."""

"""Fits that make the simulator behave like the robot that was recorded."""

"""The loop and all that touches the robot: wire format, links, clock, gateway, processes, shared memory."""

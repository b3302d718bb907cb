"""What keeps the robot from harm: events and tiers, the gate, limits on the target."""

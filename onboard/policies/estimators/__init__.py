"""What the robot can't measure, estimated from what it can: foot contact and force, base velocity."""

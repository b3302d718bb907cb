"""A simulated G1: the model, a robot that speaks the same DDS topics, and an in-process link."""

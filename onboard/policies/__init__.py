"""What a policy needs and how it runs: contracts and their loaders, observations, ONNX sessions."""

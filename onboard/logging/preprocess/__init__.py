"""From raw rows to training data: small pure functions, each optional, chained by `pipeline`."""

"""What a control tick costs, beside the same job done through the vendor's Python objects.

`python -m benchmarks` (or `make bench`) plays four sides against a robot process that publishes 500
states a second, one after the other and again, so that a busy moment of the machine hits all alike:

    bytes      take, decode, observe, infer, encode with checksum, write; nothing else
    objects    the same job through unitree_sdk2py's objects, taken on demand
    callback   the same job as deploy scripts do it: every state is deserialised in a callback
    onboard    a real run: parent, gateway, control with gate and record, recorder

`bytes`, `objects` and `callback` run on one interpreter, with one Cyclone and one ONNX session, so
that only the way in and out differs. docs/performance.md says what the figures mean.
"""

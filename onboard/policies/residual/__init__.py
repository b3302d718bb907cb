"""The delta-action slot: what a residual file says, and what it does to an action at run time."""

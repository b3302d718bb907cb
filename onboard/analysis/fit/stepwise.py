"""The fit that one should not make: every control period on its own, from its own recorded state.

It is here for comparison. Within one period a joint hardly answers to its target, least of all to one that
takes effect only in the next period, so the coefficients overshoot.
"""

from onboard.analysis.fit.fit import Explained, Fit
from onboard.analysis.fit.solve import compare, solve


def step_by_step(fit: Fit) -> Explained:
    """The linear delta fitted to single periods of the same data, judged on whole trajectories."""
    model, data, columns = fit.model, fit.data, fit.columns
    pieces = [piece for trajectory in data.fitted for piece in trajectory.windows(1)]
    solution = solve(model, pieces, columns, "linear", latency=False)
    fitted = compare(model, data.fitted, columns, solution.settings)
    return Explained("linear", solution, fitted, compare(model, data.held_out, columns, solution.settings))

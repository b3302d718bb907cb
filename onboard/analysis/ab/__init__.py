"""Keep or drop a residual: schedule, metrics, statistics, verdict, report."""

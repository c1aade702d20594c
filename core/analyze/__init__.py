"""From per-query measures to what they mean: comparisons of runs, failures."""

"""From a run and the judgements to per-query measures, means and their intervals."""

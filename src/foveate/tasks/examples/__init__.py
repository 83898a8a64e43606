"""Which examples a task learns from, and what of them it cannot read."""

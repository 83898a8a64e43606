"""Models arranged for fast inference."""

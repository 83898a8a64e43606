"""foveate."""

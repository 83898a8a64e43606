"""Trained weights to begin a training from (`--from`), and what a task takes of them."""

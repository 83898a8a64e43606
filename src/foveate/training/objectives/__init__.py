"""Objectives: what a training makes small, one file for each kind."""

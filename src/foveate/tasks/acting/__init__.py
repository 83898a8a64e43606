"""Agents in worlds: how they act, and what they learn from."""

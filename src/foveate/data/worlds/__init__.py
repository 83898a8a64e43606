"""Worlds that an agent sees and acts in, and what it learns from in them."""

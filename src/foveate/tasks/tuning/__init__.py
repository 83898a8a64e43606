"""Tuning a language model by what people prefer: what the ways to do so share."""

"""Texts as examples: read from files, hidden in part, packed, and made into batches."""

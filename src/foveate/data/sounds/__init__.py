"""Sounds as examples: read, cut, and made into spectrograms or audio tokens."""

"""Texts as numbers: tokenizers of foveate's own and of others."""

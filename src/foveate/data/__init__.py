"""Texts, images, sounds and worlds: from files and by name, tokenizers, datasets and batches."""

"""Hugging Face folders in use: each becomes the task of its model's head."""

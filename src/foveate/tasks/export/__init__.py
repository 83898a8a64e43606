"""Trained models as files of other libraries."""

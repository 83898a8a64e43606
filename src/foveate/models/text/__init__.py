"""Models that read or write text."""
